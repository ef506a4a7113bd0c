"""Proof of work: candidates, the node's own miner, and work for external miners.

A candidate is a complete block without nonce. Rust threads search in slices of about a tenth of a second, so that a new
head or a stop takes effect soon. External miners receive the seal hash. The first valid nonce seals the block.
Submitted work is verified like an imported block.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict

from msgspec import Struct
from msgspec.structs import replace

from ophion.chain.block_builder import BuiltBlock
from ophion.consensus.pow import target
from ophion.errors import InvalidBlock
from ophion.native.ethash import ethash_compute, ethash_search, ethash_seed
from ophion.primitives.types import Hash32
from ophion.producer.block_assembly import Assembler
from ophion.runtime.clock import Entropy
from ophion.runtime.thread_pools import Lane

log = logging.getLogger(__name__)

_BUILD_DEADLINE_S = 2.0
_SLICE_S = 0.1
_FIRST_SLICE = 64
_KEPT_CANDIDATES = 16
_KEPT_MINERS = 256
_REPORT_LIFETIME_S = 600.0
_REFRESH_S = 2.0
"""Age in seconds after which a candidate is replaced if new transactions have arrived."""
_LIFETIME_S = 10.0
"""Age in seconds after which a candidate is replaced even without new transactions, to update its timestamp."""
_PAUSE_S = 1.0
"""Seconds to pause when the timestamp of a sealed block is too early."""
_EPOCH_LENGTH = 30_000
_NONCES = 2**64
_MAX_WORD = 2**256 - 1


class MiningWork(Struct, frozen=True):
    """The values that an external miner needs to search for a nonce."""

    seal_hash: Hash32
    seed_hash: Hash32
    target: Hash32
    """Largest valid proof-of-work hash."""
    number: int


class _Candidate(Struct, frozen=True):
    built: BuiltBlock
    seal_hash: Hash32
    made_at: float
    pool_version: int


class WorkPackages:
    """Provides candidates to the node's own miner and to external miners, and accepts their nonces."""

    def __init__(self, assembler: Assembler, lane: Lane) -> None:
        self._assembler = assembler
        self._lane = lane
        self._current: _Candidate | None = None
        self._recent: OrderedDict[Hash32, _Candidate] = OrderedDict()
        self._reports: OrderedDict[Hash32, tuple[int, float]] = OrderedDict()
        self._making = asyncio.Lock()

    @property
    def reported_hashrate(self) -> int:
        """Hashes per second that external miners report."""
        oldest = self._assembler.clock.monotonic() - _REPORT_LIFETIME_S
        return sum(rate for rate, at in self._reports.values() if at >= oldest)

    def report_hashrate(self, rate: int, miner: Hash32) -> None:
        """Record the hash rate of an external miner."""
        self._reports.pop(miner, None)
        self._reports[miner] = (rate, self._assembler.clock.monotonic())
        while len(self._reports) > _KEPT_MINERS:
            self._reports.popitem(last=False)

    async def candidate(self) -> _Candidate:
        """Return a candidate on the head. Makes a new candidate when the head has changed, after `_REFRESH_S` if the
        pool has changed, and after `_LIFETIME_S`.
        """
        async with self._making:
            current = self._current
            if current is not None and self._is_good(current):
                return current
            pool_version = self._assembler.pool.version
            built = await self._assembler.assemble(_BUILD_DEADLINE_S)
            seal_hash = self._assembler.chain.engine.signing_hash(built.header)
            made = _Candidate(built, seal_hash, self._assembler.clock.monotonic(), pool_version)
            self._current = self._recent[seal_hash] = made
            while len(self._recent) > _KEPT_CANDIDATES:
                self._recent.popitem(last=False)
            return made

    def _is_good(self, candidate: _Candidate) -> bool:
        assembler = self._assembler
        if not self.is_current(candidate):
            return False
        age = assembler.clock.monotonic() - candidate.made_at
        if age < _REFRESH_S:
            return True
        return age < _LIFETIME_S and candidate.pool_version == assembler.pool.version

    async def work(self) -> MiningWork | None:
        """Return the current candidate as work for an external miner; None if its block needs no proof of work."""
        candidate = await self.candidate()
        header = candidate.built.header
        if not header.difficulty:
            return None
        limit = min(target(header.difficulty), _MAX_WORD)
        seed = ethash_seed(header.number // _EPOCH_LENGTH)
        return MiningWork(candidate.seal_hash, seed, limit.to_bytes(32, "big"), header.number)

    async def submit(self, nonce: int, seal_hash: Hash32, mix_hash: Hash32) -> bool:
        """Accept a nonce. Returns False if the candidate is unknown or outdated, or the work is invalid."""
        candidate = self._recent.get(seal_hash)
        if candidate is None or not self.is_current(candidate):
            return False
        header = candidate.built.header
        if not header.difficulty:
            return False
        expected, result = await self._lane.run(lambda: ethash_compute(seal_hash, nonce, header.number))
        if expected != mix_hash or int.from_bytes(result, "big") > target(header.difficulty):
            return False
        return await self.seal(candidate, nonce, mix_hash)

    async def seal(self, candidate: _Candidate, nonce: int, mix_hash: Hash32) -> bool:
        """Commit a candidate with its nonce. Returns False if another block became the head or the timestamp is too
        early.
        """
        built = candidate.built
        if not self.is_current(candidate):
            return False
        header = replace(built.header, nonce=nonce.to_bytes(8, "big"), mix_hash=mix_hash)
        try:
            await self._assembler.commit(header, built, candidate.made_at)
        except InvalidBlock as error:
            if not error.transient:
                raise
            # the clock was set back, so the timestamp of the block is in the future
            log.warning("block not imported number=%d error=%s", header.number, error)
            return False
        return True

    def is_current(self, candidate: _Candidate) -> bool:
        """Whether the candidate extends the head."""
        return candidate.built.header.parent_hash == self._assembler.chain.head.hash


class PowMiner:
    """The node's own miner: searches for nonces until cancelled."""

    guard = None

    def __init__(
        self, work_packages: WorkPackages, lane: Lane, assembler: Assembler, entropy: Entropy, threads: int
    ) -> None:
        self.hashrate = 0
        self._work_packages = work_packages
        self._lane = lane
        self._assembler = assembler
        self._entropy = entropy
        self._threads = threads

    async def run(self) -> None:
        """Produce blocks until cancelled. Without own threads, the node only serves external miners."""
        if not self._threads:
            await asyncio.Event().wait()
        attempts = _FIRST_SLICE
        nonce = int.from_bytes(self._entropy.token(8), "big")
        try:
            while True:
                candidate = await self._work_packages.candidate()
                found, attempts = await self._search(candidate, nonce, attempts)
                nonce = (nonce + attempts) % _NONCES
                if found is not None and not await self._work_packages.seal(candidate, *found):
                    await asyncio.sleep(_PAUSE_S if self._work_packages.is_current(candidate) else 0)
        finally:
            self.hashrate = 0

    async def _search(self, candidate: _Candidate, nonce: int, attempts: int) -> tuple[tuple[int, Hash32] | None, int]:
        """Search one slice of nonces. Returns the nonce and mix hash, if found, and the number of attempts for the next
        slice.
        """
        header = candidate.built.header
        clock = self._assembler.clock
        started_at = clock.monotonic()
        count = min(attempts, _NONCES - nonce)
        found = await self._lane.run(
            lambda: ethash_search(candidate.seal_hash, header.number, header.difficulty, nonce, count, self._threads)
        )
        took = max(clock.monotonic() - started_at, 1e-6)
        # the miner tries nonces in order, so the valid nonce shows the number of attempts
        tried = count if found is None else found[0] - nonce + 1
        self.hashrate = int(tried / took)
        if found is None:
            attempts = max(1, min(int(count * _SLICE_S / took), 4 * attempts))
        return found, attempts
