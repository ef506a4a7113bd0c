"""Pooled transactions by sender and nonce: order of building, replacement, gaps, eviction.

The queue knows prices and nonces and nothing else: no clock, no chain, no checks of validity. Each sender has a
*run*, the unbroken series of nonces from the account's nonce on, which may be built; what lies beyond a gap waits.

Order of building: highest effective tip first, then earliest arrival, each sender in nonce order.

Eviction when the queue is over its size: remote before local, then lowest price, then earliest arrival (json-rpc.md
5.5). When there are too many bytes, it is the sender with most of them who loses something, whatever he pays: nobody
with ordinary transactions has to go for somebody with large ones. What goes is the *last* transaction of the sender so
found, because taking one from the middle would strand all that follow it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from itertools import repeat
from typing import TypeVar

from msgspec import Struct, field

from ophion.native.transactions import Transaction
from ophion.pool.options import MAX_BYTES
from ophion.primitives.types import Address, Hash32

T = TypeVar("T", bound=tuple[object, ...])

_SHRUNK = 0.9
"""Below this share of the limit the eviction order is forgotten, so that a pool with room pays nothing for it."""


class PooledTransaction(Struct, eq=False, gc=False):
    """A transaction in the pool. Not frozen, because making a frozen one costs three times as much; none is changed.

    It knows nobody who could know it, so that no search for cycles has to look at a pool of thousands.
    """

    transaction: Transaction
    hash: Hash32
    sender: Address
    nonce: int
    gas_limit: int
    max_fee: int
    """Most it pays for a unit of gas: the gas price of old transactions."""
    max_tip: int
    """Most it pays above the base fee: the gas price of old transactions."""
    size: int
    """Bytes it takes in a block."""
    is_local: bool
    added_at: float
    """Wall time of arrival."""
    sequence: int
    """Order of arrival."""

    def tip(self, base_fee: int) -> int:
        """What the block's producer earns per unit of gas; negative when the transaction does not pay the base fee."""
        return min(self.max_tip, self.max_fee - base_fee)


class SenderQueue(Struct, eq=False):
    """The pooled transactions of one sender."""

    start: int
    """Nonce of the account: where the run begins."""
    end: int
    """First nonce that is not in the run."""
    by_nonce: dict[int, PooledTransaction] = field(default_factory=dict)
    bytes: int = 0
    """Of all of them."""

    def take(self, nonce: int) -> None:
        """Remove; the run ends where something is missing now."""
        self.bytes -= self.by_nonce.pop(nonce).size
        if self.start <= nonce < self.end:
            self.end = nonce

    def move(self, start: int) -> list[PooledTransaction]:
        """The account has another nonce now: the transactions below it, which are taken out."""
        # nothing lies below the old start, so this follows what was mined; where the account has leapt, what waits
        if start - self.start <= len(self.by_nonce):
            stale = [item for nonce in range(self.start, start) if (item := self.by_nonce.get(nonce)) is not None]
        else:
            stale = [item for nonce, item in self.by_nonce.items() if nonce < start]
        for item in stale:
            del self.by_nonce[item.nonce]
            self.bytes -= item.size
        # what was mined is gone already; nothing may be built where the account's own nonce is missing
        if start < self.start or start > self.end or start not in self.by_nonce:
            self.end = start
        self.start = start
        self.grow()
        return stale

    def last(self) -> PooledTransaction:
        """The transaction with the highest nonce: the last of the run, where nothing waits beyond a gap."""
        is_whole = len(self.by_nonce) == self.end - self.start
        return self.by_nonce[self.end - 1 if is_whole else max(self.by_nonce)]

    def grow(self) -> None:
        """The run goes on over what is there already."""
        end = self.end
        while end in self.by_nonce:
            end += 1
        self.end = end


class Queue:
    """All pooled transactions."""

    def __init__(self, limit: int, limit_bytes: int = MAX_BYTES) -> None:
        self.by_arrival = False
        """Whether blocks take what came first, whatever it pays."""
        self.limit = limit
        self.limit_bytes = limit_bytes
        self.bytes = 0
        """Of all transactions."""
        self.by_hash: dict[Hash32, PooledTransaction] = {}
        self.senders: dict[Address, SenderQueue] = {}
        self.local_count = 0
        self._victims: list[tuple[bool, int, int, Hash32]] | None = None
        """Who goes first when there are too many, while there nearly are; some have left already, and must not be kept
        for it."""
        self._heaviest: list[tuple[int, Address]] | None = None
        """Senders by minus their bytes, while there are nearly too many bytes; some have fewer by now."""

    def __len__(self) -> int:
        return len(self.by_hash)

    def find(self, sender: Address, nonce: int) -> PooledTransaction | None:
        """The pooled transaction of this sender with this nonce."""
        queue = self.senders.get(sender)
        return None if queue is None else queue.by_nonce.get(nonce)

    def put(self, item: PooledTransaction, account_nonce: int) -> PooledTransaction | None:
        """Add a transaction; the one it replaces, if any. The caller has decided that it may replace it."""
        replaced = self.find(item.sender, item.nonce)
        if replaced is not None:
            del self.by_hash[replaced.hash]
            self.local_count -= replaced.is_local
            self.bytes -= replaced.size
            queue = self.senders[item.sender]
            queue.bytes -= replaced.size
            del queue.by_nonce[item.nonce]  # the run is not broken: its place is taken at once
        self.add(item, account_nonce)
        return replaced

    def add(self, item: PooledTransaction, account_nonce: int) -> bool:
        """Add a transaction that replaces none; False, and nothing is changed, where its place is taken."""
        sender, nonce, size = item.sender, item.nonce, item.size
        queue = self.senders.get(sender)
        if queue is None:
            queue = self.senders[sender] = SenderQueue(account_nonce, account_nonce)
        by_nonce = queue.by_nonce
        if nonce in by_nonce:
            return False
        by_nonce[nonce] = self.by_hash[item.hash] = item
        queue.bytes += size
        if nonce == queue.end:
            queue.end = end = nonce + 1
            if end in by_nonce:
                queue.grow()
        self.bytes += size
        self.local_count += item.is_local
        if self._victims is not None:
            heappush(self._victims, (item.is_local, item.max_tip, item.sequence, item.hash))
        if self._heaviest is not None:
            heappush(self._heaviest, (-queue.bytes, sender))
        return True

    def remove(self, item: PooledTransaction) -> None:
        """Take a transaction out; those behind it in its sender's run wait from now on."""
        del self.by_hash[item.hash]
        self.local_count -= item.is_local
        self.bytes -= item.size
        queue = self.senders[item.sender]
        queue.take(item.nonce)
        if not queue.by_nonce:
            del self.senders[item.sender]

    def take_mined(self, hashes: Sequence[Hash32]) -> list[PooledTransaction]:
        """Take out what stands in a block; whoever calls this moves the senders to their nonces afterwards.

        The items are the caller's, who lets go of them when there is time: that takes as long as all of this.
        """
        by_hash = self.by_hash
        mined = [item for item in map(by_hash.pop, hashes, repeat(None)) if item is not None]
        self.bytes -= sum([item.size for item in mined])
        self.local_count -= sum([item.is_local for item in mined])
        # who has most of its transactions mined keeps the others; of anybody else single ones are taken
        rich: set[Address] = set()
        for sender, count in Counter([item.sender for item in mined]).items():
            queue = self.senders[sender]
            if 2 * count < len(queue.by_nonce):
                rich.add(sender)
                continue
            queue.by_nonce = {nonce: item for nonce, item in queue.by_nonce.items() if item.hash in by_hash}
            queue.bytes = sum([item.size for item in queue.by_nonce.values()])
        if rich:
            for item in mined:
                if item.sender in rich:
                    queue = self.senders[item.sender]
                    del queue.by_nonce[item.nonce]
                    queue.bytes -= item.size
        return mined

    def move(self, sender: Address, account_nonce: int) -> list[PooledTransaction]:
        """The account's nonce is this now: the transactions that are too old with it, which are taken out."""
        queue = self.senders.get(sender)
        if queue is None:
            return []
        stale = queue.move(account_nonce)
        for item in stale:
            del self.by_hash[item.hash]
            self.local_count -= item.is_local
            self.bytes -= item.size
        if not queue.by_nonce:
            del self.senders[sender]
        return stale

    def best(self, base_fee: int, least_price: int = 0) -> Iterator[PooledTransaction]:
        """Transactions that may be built now, best first, each sender in nonce order.

        A transaction that does not pay the base fee, or less than `least_price` in all, holds back those behind it.
        """
        least_tip = max(least_price - base_fee, 0)
        heap = []
        for queue in self.senders.values():
            if queue.end > queue.start:
                item = queue.by_nonce[queue.start]
                tip = item.tip(base_fee)
                if tip >= least_tip:
                    heap.append((0 if self.by_arrival else -tip, item.sequence, item, queue))
        heapify(heap)
        while heap:
            _, _, item, queue = heappop(heap)
            yield item
            following = item.nonce + 1
            if following < queue.end:
                item = queue.by_nonce[following]
                tip = item.tip(base_fee)
                if tip >= least_tip:
                    heappush(heap, (0 if self.by_arrival else -tip, item.sequence, item, queue))

    def run_from(self, item: PooledTransaction, base_fee: int, least_price: int = 0) -> Iterator[PooledTransaction]:
        """A transaction and what follows it in its sender's run, as far as prices allow; nothing beyond a gap."""
        queue = self.senders.get(item.sender)
        if queue is None or not queue.start <= item.nonce < queue.end:
            return
        least_tip = max(least_price - base_fee, 0)
        for nonce in range(item.nonce, queue.end):
            item = queue.by_nonce[nonce]
            if item.tip(base_fee) < least_tip:
                return
            yield item

    def evict(self) -> list[PooledTransaction]:
        """Take out what is over the limits, least wanted first."""
        return self._evict_bytes() + self._evict_count()

    def _evict_count(self) -> list[PooledTransaction]:
        evicted: list[PooledTransaction] = []
        if len(self.by_hash) <= self.limit:
            if len(self.by_hash) < self.limit * _SHRUNK or _is_stale(self._victims, len(self.by_hash)):
                self._victims = None
            return evicted
        items = ((item.is_local, item.max_tip, item.sequence, item.hash) for item in self.by_hash.values())
        victims = self._victims = _ordered(self._victims, len(self.by_hash), items)
        while len(self.by_hash) > self.limit:
            _, _, sequence, hash = victims[0]
            item = self.by_hash.get(hash)
            if item is None or item.sequence != sequence:
                heappop(victims)
                continue
            last = self.senders[item.sender].last()
            self.remove(last)
            evicted.append(last)
        return evicted

    def _evict_bytes(self) -> list[PooledTransaction]:
        evicted: list[PooledTransaction] = []
        if self.bytes <= self.limit_bytes:
            if self.bytes < self.limit_bytes * _SHRUNK or _is_stale(self._heaviest, len(self.senders)):
                self._heaviest = None
            return evicted
        senders = ((-queue.bytes, sender) for sender, queue in self.senders.items())
        heaviest = self._heaviest = _ordered(self._heaviest, len(self.senders), senders)
        while self.bytes > self.limit_bytes:
            noted, sender = heaviest[0]
            queue = self.senders.get(sender)
            if queue is None or queue.bytes > -noted:  # gone, or noted again when it got more
                heappop(heaviest)
                continue
            if queue.bytes == -noted:
                last = queue.last()
                self.remove(last)
                evicted.append(last)
            heapreplace(heaviest, (-queue.bytes, sender))
        return evicted

    def executable(self) -> int:
        """How many transactions are in their sender's run."""
        return sum(queue.end - queue.start for queue in self.senders.values())

    def matching(self, condition: Callable[[PooledTransaction], bool]) -> list[PooledTransaction]:
        """Every transaction for which the condition holds."""
        return [item for item in self.by_hash.values() if condition(item)]


def _ordered(kept: list[T] | None, count: int, entries: Iterable[T]) -> list[T]:
    """An order of eviction: the one that is kept, or another where there is none or most of it has left already."""
    if kept is not None and not _is_stale(kept, count):
        return kept
    made = list(entries)
    heapify(made)
    return made


def _is_stale(kept: list[T] | None, count: int) -> bool:
    """Whether most of an order has left already."""
    return kept is not None and len(kept) > 2 * count + 64
