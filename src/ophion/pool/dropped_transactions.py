"""Recently dropped transactions, with time and reason, for later queries."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from ophion.pool.events import Dropped, DropReason, PoolEvent
from ophion.primitives.types import Hash32
from ophion.runtime.clock import Clock

_REMEMBERED: Final = 4096


class DroppedTransaction(Struct, frozen=True):
    """A transaction that left the pool without being mined."""

    at: float
    """Wall time at which the transaction was dropped."""
    reason: DropReason
    detail: str | None


class DroppedTransactions:
    """The last few thousand dropped transactions. A new entry evicts the oldest entry."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_hash: OrderedDict[Hash32, DroppedTransaction] = OrderedDict()

    def on_pool_event(self, event: PoolEvent) -> None:
        if not isinstance(event, Dropped):
            return
        now = self._clock.now()
        for item in event.transactions:
            self._by_hash[item.hash] = DroppedTransaction(now, event.reason, (event.details or {}).get(item.hash))
            self._by_hash.move_to_end(item.hash)
        while len(self._by_hash) > _REMEMBERED:
            self._by_hash.popitem(last=False)

    def get(self, hash: Hash32) -> DroppedTransaction | None:
        return self._by_hash.get(hash)
