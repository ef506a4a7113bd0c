"""What a transaction should pay: the floor of this node, and suggestions drawn from the last blocks.

`FeeFloor` is the one place where the node's own minimum lives: the miner methods change it while the node runs; pool,
builder and suggestions read it. The suggestions are those of json-rpc.md 5.3 and 7.1: medians over the transactions
of the last hundred blocks. Blocks are summarised once, as counts by price, and the answer is kept until the head
changes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from ophion.native.store import Store
from ophion.native.transactions import Body
from ophion.primitives.types import WEI_PER_GWEI, Hash32

SAMPLE_BLOCKS = 100
_KEPT_SUMMARIES = 1024


@dataclass(slots=True)
class FeeFloor:
    """The least a transaction must pay to enter the pool or a block of this node, in wei per gas."""

    min_gas_price: int = 1000
    min_priority_fee: int = 0


@dataclass(frozen=True, slots=True)
class FeeConfig:
    """How prices are suggested."""

    sample_blocks: int = SAMPLE_BLOCKS
    percentile: int = 50
    cap: int = 500 * WEI_PER_GWEI


@dataclass(frozen=True, slots=True)
class BlockPrices:
    """The prices offered in one block, each with how often."""

    gas_prices: Mapping[int, int]
    """Of transactions that name a gas price (types 0 and 1)."""
    priority_fees: Mapping[int, int]
    """Of transactions that name a priority fee (types 2 and later)."""


def summarise(body: Body) -> BlockPrices:
    """Count the prices of a block."""
    gas_prices: Counter[int] = Counter()
    priority_fees: Counter[int] = Counter()
    if body.transaction_count:
        for transaction in body.transactions:
            if transaction.type < 2:
                gas_prices[transaction.max_fee_per_gas] += 1
            else:
                priority_fees[transaction.max_priority_fee_per_gas] += 1
    return BlockPrices(gas_prices, priority_fees)


def percentile(counts: Mapping[int, int], share: float) -> int | None:
    """Element floor(n x share) of the sorted prices; None without any."""
    total = sum(counts.values())
    if not total:
        return None
    position = min(int(total * share), total - 1)
    for price in sorted(counts):
        position -= counts[price]
        if position < 0:
            return price
    raise AssertionError("the counts do not add up")


class PriceSamples:
    """Prices of recent blocks, summarised when first asked for.

    Reading a hundred full bodies may take long: `warm` says whether all of them are summarised already, and a caller
    that finds them cold asks from a lane. A race between two such callers costs a second reading and nothing else.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._summaries: OrderedDict[Hash32, BlockPrices] = OrderedDict()

    def of(self, block: Hash32) -> BlockPrices:
        """Prices of one block, an unknown one having none."""
        known = self._summaries.get(block)
        if known is None:
            body = self._store.body(block)
            known = BlockPrices({}, {}) if body is None else summarise(body)
            self._summaries[block] = known
            while len(self._summaries) > _KEPT_SUMMARIES:
                self._summaries.popitem(last=False)
        return known

    def put(self, block: Hash32, body: Body) -> None:
        """Remember the prices of a block that was just committed."""
        self._summaries[block] = summarise(body)

    def missing(self, head: int, count: int) -> list[Hash32]:
        """Blocks among the last `count` that are not summarised yet."""
        hashes = (self._store.canonical_hash(number) for number in range(max(0, head - count + 1), head + 1))
        return [block for block in hashes if block is not None and block not in self._summaries]

    def medians(self, head: int, config: FeeConfig) -> tuple[int | None, int | None]:
        """(gas price, priority fee) in the middle of the last blocks; None where no transaction names one."""
        gas_prices: Counter[int] = Counter()
        priority_fees: Counter[int] = Counter()
        for number in range(max(0, head - config.sample_blocks + 1), head + 1):
            block = self._store.canonical_hash(number)
            if block is not None:
                prices = self.of(block)
                gas_prices.update(prices.gas_prices)
                priority_fees.update(prices.priority_fees)
        share = config.percentile / 100
        return percentile(gas_prices, share), percentile(priority_fees, share)
