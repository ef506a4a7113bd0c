"""Minimum prices of this node, and price statistics of recent blocks.

`FeeFloor` holds the node's minimum prices. The RPC methods `miner_*` change these prices; pool, block builder and
`FeeOracle` read them. Suggestions are medians over the transactions of the last hundred blocks (json-rpc.md 5.3, 7.1).
Each block is read once and stored as counts by price. The medians are cached until the head changes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping

from msgspec import Struct

from ophion.native.exceptions import NotDownloaded
from ophion.native.store import Store
from ophion.native.transactions import Body
from ophion.primitives.types import WEI_PER_GWEI, Hash32

_KEPT_SUMMARIES = 1024
_INLINE_BLOCKS = 2


class FeeFloor(Struct):
    """Minimum prices for the pool and the blocks of this node, in wei per gas."""

    min_gas_price: int = 1000
    min_priority_fee: int = 0

    def required_tip(self, base_fee: int) -> int:
        """Return the minimum priority fee that the pool admits at this base fee. `FeeOracle` suggests at least this
        fee.
        """
        return max(self.min_priority_fee, self.min_gas_price - base_fee, 0)


class PriceSampling(Struct, frozen=True):
    """Settings of price suggestions: number of blocks, percentile and cap."""

    blocks: int = 100
    percentile: int = 50
    cap: int = 500 * WEI_PER_GWEI


class BlockPrices(Struct, frozen=True):
    """Prices offered in one block, with the number of transactions at each price."""

    gas_prices: Mapping[int, int]
    """Prices of transactions with a gas price (types 0 and 1)."""
    priority_fees: Mapping[int, int]
    """Prices of transactions with a priority fee (types 2 and later)."""


_NO_PRICES = BlockPrices({}, {})


def prices_of(body: Body) -> BlockPrices:
    """Count the transactions of a block at each price."""
    if not body.transaction_count:
        return _NO_PRICES
    gas_prices: Counter[int] = Counter()
    priority_fees: Counter[int] = Counter()
    for transaction in body.transactions:
        if transaction.type < 2:
            gas_prices[transaction.max_fee_per_gas] += 1
        else:
            priority_fees[transaction.max_priority_fee_per_gas] += 1
    return BlockPrices(gas_prices, priority_fees)


def percentile(counts: Mapping[int, int], share: float) -> int | None:
    """Return the price at index floor(n x share) of the n sorted prices, or None without prices."""
    total = sum(counts.values())
    position = min(int(total * share), total - 1)
    for price in sorted(counts):
        position -= counts[price]
        if position < 0:
            return price
    return None


class PriceSamples:
    """Prices of recent blocks.

    Reading many bodies takes long, so callers check `is_warm` and call `medians` in a worker thread if it is False.
    Concurrent calls are safe, but each call repeats the reads.
    """

    def __init__(self, store: Store, sampling: PriceSampling) -> None:
        self.sampling = sampling
        self._store = store
        self._known: OrderedDict[Hash32, BlockPrices] = OrderedDict()
        self._answer: tuple[Hash32, tuple[int | None, int | None]] | None = None

    def is_warm(self, head: Hash32, number: int) -> bool:
        """Whether so many blocks are cached that `medians` reads at most two blocks."""
        if self._answer is not None and self._answer[0] == head:
            return True
        return sum(block not in self._known for block in self._sampled(number)) <= _INLINE_BLOCKS

    def medians(self, head: Hash32, number: int) -> tuple[int | None, int | None]:
        """Return the median gas price and the median priority fee of recent blocks. A median without transactions is
        None.
        """
        if self._answer is not None and self._answer[0] == head:
            return self._answer[1]
        gas_prices: Counter[int] = Counter()
        priority_fees: Counter[int] = Counter()
        for block in self._sampled(number):
            prices = self._prices(block)
            gas_prices.update(prices.gas_prices)
            priority_fees.update(prices.priority_fees)
        share = self.sampling.percentile / 100
        medians = percentile(gas_prices, share), percentile(priority_fees, share)
        self._answer = (head, medians)
        return medians

    def _sampled(self, head: int) -> list[Hash32]:
        hashes = map(self._store.canonical_hash, range(max(0, head - self.sampling.blocks + 1), head + 1))
        return [block for block in hashes if block is not None]

    def _prices(self, block: Hash32) -> BlockPrices:
        known = self._known.get(block)
        if known is None:
            try:
                body = self._store.body(block)
            except NotDownloaded:
                # after snap synchronisation, old bodies are downloaded later: return no prices now, and do not cache
                # them
                return _NO_PRICES
            known = self._known[block] = _NO_PRICES if body is None else prices_of(body)
            while len(self._known) > _KEPT_SUMMARIES:
                self._known.popitem(last=False)
        return known
