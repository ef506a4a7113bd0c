"""`LatePayloads`: executes late payloads, and all later transactions of their groups.

A payload is late if its marker has been processed and the payload still has to be executed: it could not be read when
its marker was processed, or it was put into the backlog. The database records the keys of late payloads, so that a
restarted node executes them.
"""

from __future__ import annotations

from collections.abc import Set
from functools import partial
from typing import TYPE_CHECKING, Final

from ophion.chain.chain import Chain
from ophion.native.privacy import PrivateBatch
from ophion.privacy.execution_events import ExecutedTransaction
from ophion.privacy.payloads import MarkerPosition
from ophion.runtime.thread_pools import Lanes

if TYPE_CHECKING:
    from ophion.privacy.private_executor import PrivateExecutor

_LATE_AT_ONCE: Final = 1024
_ALL_BLOCKS: Final = 1 << 62


class LatePayloads:
    """Executes late payloads up to the block that the `PrivateExecutor` has reached."""

    def __init__(self, executor: PrivateExecutor, chain: Chain, lanes: Lanes) -> None:
        self._executor = executor
        self._chain = chain
        self._lanes = lanes
        self._ledger, self._backlog, self._payloads = executor.ledger, executor.backlog, executor.payloads

    async def settle(self) -> None:
        """Execute late payloads, and all later transactions of their groups."""
        start = b""
        while keys := self._ledger.late(start, _LATE_AT_ONCE):
            start = keys[-1] + b"\0"
            keys = [key for key in keys if self._backlog.group_of(key) is None]
            if not keys:
                continue
            places = [MarkerPosition(*row) for key in keys for row in self._ledger.markers_of(key)]
            places = [one for one in places if one.number <= self._executor.number]
            if self._payloads.is_flexible and await self._executor.hand_overs.take(place.block for place in places):
                # `take` has stored earlier transactions of a group as late payloads, possibly with keys below `start`:
                # read all late payloads again from the first key on
                start = b""
                continue
            late = {place.hash for place in places if not self._executor.has_receipt(place)}
            read = await self._payloads.read([place.payload_key for place in places])
            readable = [(place, found.group) for place, found in zip(places, read, strict=True) if found is not None]
            first: dict[bytes, int] = {}
            for place, group in readable:
                first[group] = min(place.number, first.get(group, place.number))
            late_blocks = {place.number for place in places}
            batch = self._executor.new_batch()
            executed = []
            for group, number in first.items():
                if group not in self._backlog.groups:
                    executed += await self._run_again(batch, group, number, late_blocks)
            for place, group in readable:
                if group in self._backlog.groups:
                    self._backlog.add(group, place.number, place.payload_key)
            # record the payloads in the backlog as late, so that a restarted node executes them
            deferred = [
                key for group in first if group in self._backlog.groups for key in self._backlog.groups[group].keys
            ]
            if deferred:
                await self._lanes.write.run(partial(self._ledger.note_late, deferred))
            await self._executor.write(batch, None, [key for key in keys if self._backlog.group_of(key) is None])
            self._executor.counts.late += len(late)
            self._executor.publish(tuple(one for one in executed if one.place.hash in late))

    async def request_missing(self) -> int:
        """Ask the enclave for all missing payloads. Returns how many of these payloads the enclave has now."""
        found, start = 0, b""
        while True:
            keys, after = await self._lanes.private.run(partial(self._ledger.unread, start, _LATE_AT_ONCE))
            # do not wait for an offline enclave, because a client waits for the result of this call
            found += len(await self.request_payloads(keys))
            if after is None:
                return found
            start = after

    async def request_payloads(self, keys: list[bytes]) -> list[bytes]:
        """Ask the enclave for payloads whose markers the executor has already processed. Returns the keys of the
        payloads that the enclave has now, and records these payloads as late.
        """
        read = await self._payloads.read_now(keys)
        turned_up = [key for key, one in zip(keys, read, strict=True) if one is not None]
        if turned_up:
            await self._lanes.write.run(partial(self._ledger.note_late, turned_up))
            self._executor.wake()
        return turned_up

    async def _run_again(
        self, batch: PrivateBatch, group: bytes, first: int, also: Set[int] = frozenset()
    ) -> list[ExecutedTransaction]:
        """Run a group again from block `first` on: all blocks with its transactions, and the blocks in `also`."""
        batch.rewind(group, first)
        known = {number for number, _ in self._ledger.blocks(group, first, _ALL_BLOCKS)}
        executed = []
        for number in sorted(known | {one for one in also if one >= first}):
            header = self._chain.canonical(number)
            if header is None or number > self._executor.number:
                break
            if group in self._backlog.groups:  # the group has moved to the backlog, which executes the remaining blocks
                break
            executed += await self._executor.run_block(
                batch, header, self._executor.markers_in(header.hash, number), only=group
            )
        return executed
