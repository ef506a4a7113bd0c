"""The state of the pivot: accounts in ranges with proofs, each with its storage and its code.

    segments of keys ─> account ranges ─> storages, codes ─> accounts        progress is stored with each range
    another pivot    ─> trie nodes from the root down ─> changed accounts

After a change of the pivot, the ranges continue where the ranges of the old pivot stopped. The stored accounts are then
a mixture of several states. Finally the trie nodes of the last pivot are compared with the stored nodes, and all
differences are downloaded, until the stored state has the root of the last pivot.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from ophion.errors import SnapSyncError
from ophion.native.exceptions import translated
from ophion.native.store import AccountBatch, StateDifference, StateDownload, Store
from ophion.node.snap_sync.peer_choice import PeerChoice
from ophion.peers.snap.messages import MAX_KEY
from ophion.primitives.types import EMPTY_TRIE_ROOT, ZERO_HASH, Hash32
from ophion.runtime.thread_pools import Lanes

log = logging.getLogger(__name__)

T = TypeVar("T")

SEGMENTS: Final = 8
"""Number of equal parts of the key space whose accounts are requested concurrently."""
MAX_STORAGES: Final = 1024
"""Maximum number of accounts in one request for storage slots."""
MAX_CODES: Final = 64
MAX_NODES: Final = 256
MAX_CHANGES: Final = 4096
"""Maximum number of differing accounts in memory before they are written to the database."""
_MAX_ROUNDS: Final = 8
"""Maximum number of comparisons with the trie of one state root."""
_REPORT_S: Final = 5.0


class StateSync:
    """Downloads the state of the pivot into a database. After a change of the pivot, continues with the state root of
    the new pivot.
    """

    def __init__(self, store: Store, choice: PeerChoice, lanes: Lanes) -> None:
        self._store = store
        self._choice = choice
        self._lanes = lanes
        with translated():
            self._download = StateDownload(store)
        self._root = ZERO_HASH
        self._count = 0
        self._reported_at = 0.0

    async def run(self, root: Hash32) -> None:
        """Download the state with this root. Raises `StateGone` when no peer has this state any more."""
        self._root = root
        if root == EMPTY_TRIE_ROOT and await self._write(lambda: self._download.root) == root:
            # a state without accounts has nothing to fetch, and no peer can prove a range of an empty trie
            return
        try:
            async with asyncio.TaskGroup() as group:
                for index in range(SEGMENTS):
                    group.create_task(self._segment(index))
        except BaseExceptionGroup as failures:
            raise _first(failures) from None
        for _ in range(_MAX_ROUNDS):
            if await self._write(lambda: self._download.root) == root:
                return
            await self._heal()
        raise SnapSyncError(f"the downloaded state is not 0x{root.hex()}")

    # --- ranges ---------------------------------------------------------------------------------

    async def _segment(self, index: int) -> None:
        """Download the accounts of one segment of the key space, from the key at which an earlier run stopped."""
        width = (1 << 256) // SEGMENTS
        end = MAX_KEY if index == SEGMENTS - 1 else ((index + 1) * width - 1).to_bytes(32, "big")
        key = f"snap segment {index}"
        stored = self._store.meta(key)
        origin: Hash32 | None = (index * width).to_bytes(32, "big") if stored is None else stored or None
        while origin is not None:
            batch = await self._accounts(origin, end)
            await self._complete(batch)
            origin = batch.next if batch.next is not None and batch.next <= end else None
            await self._write(partial(self._download.put_accounts, batch, [], [(key, origin or b"")]))
            self._report(len(batch))

    async def _accounts(self, origin: Hash32, end: Hash32) -> AccountBatch:
        root = self._root
        return await self._choice.ask(
            root,
            lambda peer: peer.account_range(root, origin, end),
            self._lanes.peers,
            lambda response: _counted(StateDownload.verify_accounts(response, root, origin)),
        )

    async def _complete(self, batch: AccountBatch) -> None:
        """Download the storage and code of these accounts that the database lacks."""
        accounts = {root: account for account, root in batch.storages}
        missing = await self._write(partial(self._download.missing_storages, list(accounts)))
        while missing:
            missing = await self._storages(missing, accounts)
        codes = await self._write(partial(self._download.missing_codes, batch.codes))
        while codes:
            await self._codes(codes[:MAX_CODES])
            codes = await self._write(partial(self._download.missing_codes, codes))

    async def _storages(
        self, missing: Sequence[tuple[Hash32, Hash32]], accounts: dict[Hash32, Hash32]
    ) -> list[tuple[Hash32, Hash32]]:
        """Request slots of the first accounts in `missing`. Returns the accounts whose storage is still incomplete."""
        first, origin = missing[0]
        # the start key of a request applies only to its first account, so add only accounts without any stored slot
        whole = [root for root, next_key in missing[1:MAX_STORAGES] if next_key == ZERO_HASH]
        roots = [first] if origin != ZERO_HASH else [first, *whole]
        root, keys = self._root, [accounts[one] for one in roots]

        def read(response: bytes) -> tuple[None, int] | None:
            count = self._download.put_storages(response, roots, origin)
            # treat a response without slots like the response of a peer that lacks the state
            return (None, count) if count else None

        await self._choice.ask(root, lambda peer: peer.storage_ranges(root, keys, origin), self._lanes.peers, read)
        return await self._write(partial(self._download.missing_storages, [one for one, _ in missing]))

    async def _codes(self, hashes: list[Hash32]) -> None:
        await self._choice.ask(
            self._root,
            lambda peer: peer.byte_codes(hashes),
            self._lanes.write,
            lambda response: _unless_none(self._download.put_codes(response, hashes)),
        )

    # --- differences ----------------------------------------------------------------------------

    async def _heal(self) -> None:
        """Compare the stored state with the trie of the current root: request the trie nodes that differ, and write the
        accounts below these nodes.
        """
        root = self._root
        difference = StateDifference(root)
        log.info("comparing the state with its last root root=0x%s", root.hex())
        while not difference.is_complete:
            paths = [[path] for path in difference.next_paths(MAX_NODES)]
            await self._choice.ask(
                root,
                lambda peer: peer.trie_nodes(root, paths),  # noqa: B023
                self._lanes.write,
                lambda response: _unless_none(self._download.receive_nodes(difference, response)),
            )
            if difference.changes >= MAX_CHANGES:
                await self._apply(difference)
        await self._apply(difference)

    async def _apply(self, difference: StateDifference) -> None:
        """Write the accounts in which the stored state differs from the current root, with their storage and code."""
        batch, removed = await self._write(difference.take)
        await self._complete(batch)
        await self._write(partial(self._download.put_accounts, batch, removed, []))
        self._report(len(batch))

    # --- the database ---------------------------------------------------------------------------

    async def _write(self, job: Callable[[], T]) -> T:
        with translated():
            return await self._lanes.write.run(job)

    def _report(self, count: int) -> None:
        self._count += count
        now = asyncio.get_running_loop().time()
        if now - self._reported_at >= _REPORT_S:
            self._reported_at = now
            log.info("downloading state root=0x%s accounts=%d", self._root.hex(), self._count)


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    found = failures.exceptions[0]
    return _first(found) if isinstance(found, BaseExceptionGroup) else found


def _counted(batch: AccountBatch | None) -> tuple[AccountBatch, int] | None:
    return None if batch is None else (batch, len(batch))


def _unless_none(count: int) -> tuple[int, int] | None:
    """Return the number of items in a response, as value and as number of entries for `PeerChoice.ask`.

    None if there are no items.
    """
    return (count, count) if count else None
