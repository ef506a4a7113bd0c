"""Pooled transactions by sender and nonce: build order, nonce gaps, eviction.

The queue knows only prices and nonces, and reads neither clock nor chain. Each sender has a *run*: the unbroken series
of nonces from the account's nonce on. Transactions in the run can be built; transactions beyond a gap wait.

Build order: highest effective tip first, then earliest arrival, each sender in nonce order.

Eviction above the count limit: remote before local, then lowest price, then earliest arrival (json-rpc.md 5.5). Above
the byte limit, the sender with most bytes loses transactions, whatever their price. So large transactions of one sender
do not evict the transactions of other senders. The *last* transaction of the chosen sender is evicted, because removing
a transaction from the middle would leave a gap.
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
"""Share of the limit below which the eviction order is discarded, because maintaining the order is costly."""


class PooledTransaction(Struct, eq=False, gc=False):
    """A transaction in the pool. No code modifies it.

    The class is not frozen, because creating a frozen object takes three times as long. An instance has no reference
    cycles, so the garbage collector skips it.
    """

    transaction: Transaction
    hash: Hash32
    sender: Address
    nonce: int
    gas_limit: int
    max_fee: int
    """Maximum fee per gas. For types 0 and 1, the gas price."""
    max_tip: int
    """Maximum priority fee per gas. For types 0 and 1, the gas price."""
    size: int
    """Size of the transaction in a block, in bytes."""
    is_local: bool
    added_at: float
    """Wall time at which the transaction arrived."""
    sequence: int
    """Sequence number in the order of arrival."""

    def tip(self, base_fee: int) -> int:
        """Return the effective priority fee. Negative if the transaction does not pay the base fee."""
        return min(self.max_tip, self.max_fee - base_fee)


class SenderQueue(Struct, eq=False):
    """Pooled transactions of one sender."""

    start: int
    """Nonce of the account. The run of executable transactions starts at this nonce."""
    end: int
    """First nonce after the run of executable transactions."""
    by_nonce: dict[int, PooledTransaction] = field(default_factory=dict)
    bytes: int = 0
    """Number of bytes of all transactions of the sender."""

    def take(self, nonce: int) -> None:
        """Remove the transaction with a nonce. The run of executable transactions then ends before this nonce."""
        self.bytes -= self.by_nonce.pop(nonce).size
        if self.start <= nonce < self.end:
            self.end = nonce

    def move(self, start: int) -> list[PooledTransaction]:
        """Set the account's nonce. Removes and returns the transactions with lower nonces."""
        # visit the nonces between the old and the new account nonce, or all transactions of the sender if these are
        # fewer
        if start - self.start <= len(self.by_nonce):
            stale = [item for nonce in range(self.start, start) if (item := self.by_nonce.get(nonce)) is not None]
        else:
            stale = [item for nonce, item in self.by_nonce.items() if nonce < start]
        for item in stale:
            del self.by_nonce[item.nonce]
            self.bytes -= item.size
        # if the old run does not continue at the account's nonce, begin an empty run; `extend_run` extends it
        if start < self.start or start > self.end or start not in self.by_nonce:
            self.end = start
        self.start = start
        self.extend_run()
        return stale

    def last(self) -> PooledTransaction:
        """Return the transaction with the highest nonce, even if that nonce is beyond a gap."""
        is_whole = len(self.by_nonce) == self.end - self.start
        return self.by_nonce[self.end - 1 if is_whole else max(self.by_nonce)]

    def extend_run(self) -> None:
        """Extend the run of executable transactions over transactions that are already in the queue."""
        end = self.end
        while end in self.by_nonce:
            end += 1
        self.end = end


class Queue:
    """All pooled transactions, by sender and in eviction order."""

    def __init__(self, limit: int, limit_bytes: int = MAX_BYTES) -> None:
        self.by_arrival = False
        """Whether blocks order transactions by arrival instead of price."""
        self.limit = limit
        self.limit_bytes = limit_bytes
        self.bytes = 0
        """Number of bytes of all pooled transactions."""
        self.by_hash: dict[Hash32, PooledTransaction] = {}
        self.senders: dict[Address, SenderQueue] = {}
        self.local_count = 0
        self._victims: list[tuple[bool, int, int, Hash32]] | None = None
        """Heap of eviction candidates. Maintained only while the count is near its limit; may contain removed
        transactions.
        """
        self._heaviest: list[tuple[int, Address]] | None = None
        """Heap of senders, most bytes first. Maintained only while the bytes are near their limit; may be outdated."""

    def __len__(self) -> int:
        return len(self.by_hash)

    def find(self, sender: Address, nonce: int) -> PooledTransaction | None:
        """Return the transaction of this sender with this nonce."""
        queue = self.senders.get(sender)
        return None if queue is None else queue.by_nonce.get(nonce)

    def put(self, item: PooledTransaction, account_nonce: int) -> PooledTransaction | None:
        """Add a transaction and return the transaction that it replaces, if any. The caller has checked the
        replacement.
        """
        replaced = self.find(item.sender, item.nonce)
        if replaced is not None:
            del self.by_hash[replaced.hash]
            self.local_count -= replaced.is_local
            self.bytes -= replaced.size
            queue = self.senders[item.sender]
            queue.bytes -= replaced.size
            # delete the entry first: `add` inserts the replacement at the same nonce
            del queue.by_nonce[item.nonce]
        self.add(item, account_nonce)
        return replaced

    def add(self, item: PooledTransaction, account_nonce: int) -> bool:
        """Add a transaction. Returns False, without a change, if its nonce is occupied."""
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
                queue.extend_run()
        self.bytes += size
        self.local_count += item.is_local
        if self._victims is not None:
            heappush(self._victims, (item.is_local, item.max_tip, item.sequence, item.hash))
        if self._heaviest is not None:
            heappush(self._heaviest, (-queue.bytes, sender))
        return True

    def remove(self, item: PooledTransaction) -> None:
        """Remove a transaction. Later transactions of its sender then wait behind a nonce gap."""
        del self.by_hash[item.hash]
        self.local_count -= item.is_local
        self.bytes -= item.size
        queue = self.senders[item.sender]
        queue.take(item.nonce)
        if not queue.by_nonce:
            del self.senders[item.sender]

    def take_mined(self, hashes: Sequence[Hash32]) -> list[PooledTransaction]:
        """Remove mined transactions. The caller moves the senders to their new nonces afterwards.

        Returns the transactions: the caller frees these objects in small steps, because freeing thousands takes long.
        """
        by_hash = self.by_hash
        mined = [item for item in map(by_hash.pop, hashes, repeat(None)) if item is not None]
        self.bytes -= sum([item.size for item in mined])
        self.local_count -= sum([item.is_local for item in mined])
        # if at least half of a sender's transactions are mined, rebuild the sender's dictionary instead of deleting
        # single entries
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
        """Set an account's nonce. Removes and returns the transactions with lower nonces."""
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
        """Yield executable transactions, best first, each sender in nonce order.

        If a transaction pays less than the base fee, or less than `least_price`, later transactions of its sender are
        skipped too.
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
        """Yield a transaction and the next executable transactions of its sender, as long as their prices are high
        enough.
        """
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
        """Remove and return the transactions above the limits, lowest priority first."""
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
            if queue is None or queue.bytes > -noted:
                # the entry is outdated, because the sender has no transactions left or was queued again
                heappop(heaviest)
                continue
            if queue.bytes == -noted:
                last = queue.last()
                self.remove(last)
                evicted.append(last)
            heapreplace(heaviest, (-queue.bytes, sender))
        return evicted

    def executable(self) -> int:
        """Return the number of executable transactions."""
        return sum(queue.end - queue.start for queue in self.senders.values())

    def matching(self, condition: Callable[[PooledTransaction], bool]) -> list[PooledTransaction]:
        """Return every transaction for which the condition holds."""
        return [item for item in self.by_hash.values() if condition(item)]


def _ordered(order: list[T] | None, count: int, entries: Iterable[T]) -> list[T]:
    """Return the eviction order. Builds a new order if the old order is missing or mostly stale."""
    if order is not None and not _is_stale(order, count):
        return order
    fresh = list(entries)
    heapify(fresh)
    return fresh


def _is_stale(order: list[T] | None, count: int) -> bool:
    """Whether most entries of an eviction order have left the pool."""
    return order is not None and len(order) > 2 * count + 64
