"""`Fork`: fetches the state of another chain on first access.

Rust calls `Fork` to read a value that is not known yet. Threads of the write and build lanes wait for the source. In
all other threads the read raises `NotFetched` and notes the key; the request then fetches all noted keys in one batch
and runs again (rpc/services/fork_requests.py). A call first runs with zero for unknown values (`prefetch`), which finds
many keys at once. The source lists more keys with `eth_createAccessList`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

import orjson
from msgspec import Struct
from msgspec.structs import replace

from ophion.dev.fork import fork_block
from ophion.dev.fork.contract_prefetch import Siblings
from ophion.dev.fork.fork_block import ForkPoint
from ophion.dev.fork.response_cache import ForkCache, keep_point
from ophion.dev.fork.settings import ForkSettings
from ophion.dev.fork.source_client import METHOD_NOT_FOUND_CODES, ForkSource
from ophion.dev.fork.state_calls import Answers, StateCalls
from ophion.errors import ForkSourceError
from ophion.native.exceptions import NativeError
from ophion.native.fork import ForkState
from ophion.primitives.hexcodec import data
from ophion.runtime.blocking_json_rpc import Call, Failure

Key: TypeAlias = tuple[bytes | None, bytes | None, int | None]
"""Key of a value to fetch: an account (address), a storage slot (address and slot) or a block hash (block number). The
other parts are None.
"""

MAX_ROUNDS = 8
"""Maximum number of trial runs of a call. After these runs, the call runs with blocking fetches."""
_THREADS = 32
"""Number of threads that may wait for the source. While a request runs, further keys are collected for the next
request.
"""
_GATHER_S = 0.002
"""Seconds to collect keys before they are requested from the source."""
_WAITING_THREADS = ("write", "build", "fork")
"""Name prefixes of the threads in which a read may wait for the source."""
_GUESSED_SLOTS = tuple(number.to_bytes(32, "big") for number in range(8))
"""Slots that are fetched together with a contract's account, because most contracts have their first
variables there.
"""

T = TypeVar("T")


class _Job(Struct):
    """Keys to fetch, and the call that reads these keys."""

    keys: list[Key]
    call: dict[str, Any] | None
    is_done: bool = False
    error: ForkSourceError | None = None


class Fork:
    """State, blocks and responses of the forked chain."""

    def __init__(self, settings: ForkSettings, source: ForkSource, point: ForkPoint) -> None:
        self.settings = settings
        self.source = source
        self.point = point
        self.state = ForkState(point.number, self._on_missing)
        self.waits_always = False
        """Whether a read of a missing value waits for the source in every thread, instead of raising `NotFetched`.
        Chains without worker threads set this flag.
        """
        self._cache: ForkCache | None = None
        self._responses: dict[bytes, Any] = {}
        self._nonces: dict[bytes, int] = {}
        self._fetching = threading.Lock()
        self._wanted: dict[Key, None] = {}
        self._jobs: list[_Job] = []
        self._siblings = Siblings()
        self._is_verified = not point.is_cached
        self._lists_access = True
        self._calls = StateCalls(hex(point.number))
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="fork")
        self.state.add_block_hash(point.number, point.header.hash)
        if settings.cache_path is not None:
            self._cache = ForkCache(settings.cache_path, point.chain_id, point.header.hash)
            for record in self._cache.records():
                self._apply(record)

    @classmethod
    def open(cls, settings: ForkSettings) -> Fork:
        """Find the forked block. Raises `ForkSourceError` when the source cannot be used."""
        source = ForkSource(settings)
        return cls(settings, source, fork_block.find(settings, source))

    def close(self) -> None:
        """Stop all fetches from the source of the fork."""
        self.source.close()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._cache is not None:
            self._cache.close()

    def use_source(self, url: str) -> None:
        """Fetch from another node of the same chain from now on."""
        self.settings = replace(self.settings, url=url)
        self.source = ForkSource(self.settings)
        self._is_verified = False

    async def run(self, job: Callable[[], T]) -> T:
        """Run a job that waits for the source, in a worker thread of the fork."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, job)

    # --- state ----------------------------------------------------------------------------------

    def _on_missing(self, address: bytes | None, slot: bytes | None, number: int | None) -> bool:
        key = (address, slot, number)
        if not self.waits_always and not threading.current_thread().name.startswith(_WAITING_THREADS):
            self._wanted[key] = None
            return False
        self.load((key,))
        return True

    def load_wanted(self) -> None:
        """Fetch the values of the keys that failed reads (`NotFetched`) have recorded."""
        self.load(())

    def load(self, keys: Iterable[Key], call: dict[str, Any] | None = None) -> None:
        """Fetch `keys`, the keys that failed reads have noted, and the access list of `call`.

        Calls that arrive during a request to the source share the next request.
        """
        job = _Job([key for key in (*keys, *self._wanted) if not self.state.knows(*key)], call)
        if not job.keys:
            return
        self._jobs.append(job)
        with self._fetching:
            if not job.is_done:
                time.sleep(_GATHER_S)
                jobs, self._jobs = self._jobs, []
                self._fetch_jobs(jobs)
        if job.error is not None:
            raise job.error

    def _fetch_jobs(self, jobs: list[_Job]) -> None:
        wanted, self._wanted = self._wanted, {}
        for job in jobs:
            wanted.update(dict.fromkeys(job.keys))
            job.is_done = True
        missing = [key for key in wanted if not self.state.knows(*key)]
        try:
            if missing:
                self._fetch(missing, [job.call for job in jobs if job.call is not None and self._lists_access])
        except ForkSourceError as error:
            for job in jobs:
                job.error = error
        except (ArithmeticError, AttributeError, LookupError, NativeError, TypeError, ValueError) as error:
            for job in jobs:
                job.error = ForkSourceError(
                    f"The source of the fork, {self.source.name}, gave a wrong answer: {error!r}"
                )

    def _fetch(self, keys: list[Key], calls: list[dict[str, Any]]) -> None:
        tag = hex(self.point.number)
        extra: list[Call] = [] if self._is_verified else [("eth_getBlockByNumber", [tag, False])]
        extra += [("eth_createAccessList", [call, tag]) for call in calls]
        found = self._calls.fetch(self.source, keys, self.state, extra)
        if not self._is_verified:
            self._verify(found.extra.pop(0))
        self._keep(found)
        listed = dict.fromkeys(key for answer in found.extra for key in self._listed(answer))
        unknown = [key for key in listed if not self.state.knows(*key)]
        if unknown:
            self._keep(self._calls.fetch(self.source, unknown, self.state, []))

    def _listed(self, answer: Any) -> list[Key]:
        """Return the keys of an access list, or an empty list if the call failed at the source. If the source lacks the
        method, later calls request no access list.
        """
        if isinstance(answer, Failure):
            self._lists_access = answer.code not in METHOD_NOT_FOUND_CODES
            return []
        keys: list[Key] = []
        for entry in (answer or {}).get("accessList") or ():
            address = bytes.fromhex(entry["address"][2:])
            keys.append((address, None, None))
            keys += [(address, bytes.fromhex(slot[2:]), None) for slot in entry["storageKeys"]]
        return keys

    def _verify(self, block: Any) -> None:
        """Check that the source still has the block that an earlier run has stored."""
        point = self.point
        if not isinstance(block, dict) or block.get("hash") != data(point.header.hash):
            if self.settings.cache_path is not None:
                keep_point(self.settings.cache_path, self.settings.url, point.number, point.chain_id, None)
            raise ForkSourceError(
                f"The source of the fork, {self.source.name}, has another block {point.number} than before."
                " Start again to fork the new block."
            )
        self._is_verified = True

    def _keep(self, found: Answers) -> None:
        record = found.record()
        self._apply(record)
        if self._cache is not None and record:
            self._cache.add(record)

    def _apply(self, record: dict[str, Any]) -> None:
        """Load a cache record into memory."""
        state = self.state
        for code in record.get("codes", ()):
            state.add_code(bytes.fromhex(code[2:]))
        for address, slots in record.get("slots", {}).items():
            owner = bytes.fromhex(address[2:])
            for slot, value in slots.items():
                state.add_slot(owner, _word(slot), _word(value))
        for address, account in record.get("accounts", {}).items():
            known = None
            if account is not None:
                known = (account[0], int(account[1], 16), bytes.fromhex(account[2][2:]))
                self._nonces[bytes.fromhex(address[2:])] = account[0]
                self._siblings.add(bytes.fromhex(address[2:]), account[0])
            state.add_account(bytes.fromhex(address[2:]), known)
        for number, hash in record.get("hashes", {}).items():
            state.add_block_hash(int(number), bytes.fromhex(hash[2:]))
        for key, answer in record.get("responses", {}).items():
            self._responses[key.encode()] = answer

    def nonce(self, address: bytes) -> int:
        """Return the nonce of an account that is already fetched."""
        return self._nonces.get(address, 0)

    def prefetch(self, run: Callable[[], object], call: dict[str, Any]) -> None:
        """Fetch the values that a call reads. The calling thread waits for the source.

        `run` executes the call; `call` is its JSON form for the source.
        """
        for round in range(MAX_ROUNDS):
            keys = list(dict.fromkeys(self.state.collect(run)))
            if not keys:
                return
            to = bytes.fromhex(call["to"][2:]) if call.get("to") else None
            is_contract_call = bool(call.get("input")) or to is None
            if is_contract_call and to is not None and (to, None, None) in keys:
                for contract in (to, *self._siblings.following(to)):
                    keys.append((contract, None, None))
                    keys += [(contract, slot, None) for slot in _GUESSED_SLOTS]
            self.load(keys, call if round == 0 and is_contract_call else None)

    # --- blocks and receipts --------------------------------------------------------------------

    async def ask(self, method: str, params: list[Any]) -> Any:
        """Return the source's response about a block at or before the forked block, or a `Failure` for an error of the
        source. A response cannot change, so it is cached; a `Failure` is not cached.
        """
        try:
            key = orjson.dumps([method, params])
        except orjson.JSONEncodeError:
            return Failure(-32602, "Invalid params", "they are nested too deeply")
        if key in self._responses:
            return self._responses[key]
        answer = await self.run(lambda: self.source.batch([(method, params)])[0])
        if isinstance(answer, Failure):
            return answer
        self._responses[key] = answer
        if self._cache is not None:
            self._cache.add({"responses": {key.decode(): answer}})
        return answer


def _word(text: str) -> bytes:
    return int(text, 16).to_bytes(32, "big")
