"""`FeeOracle`: eth_gasPrice, eth_maxPriorityFeePerGas and eth_feeHistory (json-rpc.md 5.3, 7.1)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from msgspec import Struct

from ophion.chain.gas_price import FeeFloor, PriceSamples, PriceSampling
from ophion.chain.queries import SHORT_GAS, ChainQueries
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Hash32
from ophion.runtime.thread_pools import Lanes

_KEPT_REWARDS = 4096
_KEPT_HISTORIES = 64
"""Maximum number of cached results of eth_feeHistory. The cache empties when the head changes."""
_KEPT_HISTORY_BLOCKS = 2048
"""Maximum number of blocks of all cached results of eth_feeHistory together. A request has at most 1024 blocks."""
_HORIZON_BLOCKS = 8
"""Number of blocks for which a suggested price stays valid, even if all blocks are empty and the base fee falls."""
_FEW_BLOCKS = 32
"""Maximum number of blocks whose transactions may be read on the event loop."""
_RLP_LONG_LIST = 0xF7
_RLP_LONG_STRING = 0xA0
_RLP_STRING = 0x80


_HistoryKey: TypeAlias = tuple[int, Hash32, tuple[float, ...] | None, int, int, int | None]
"""Key of a cached fee history: block count, newest block, percentiles, minimum prices of the node, next base fee."""


class FeeHistory(Struct):
    """Result of eth_feeHistory for a range of blocks. `base_fees` and `blob_base_fees` have an additional entry for the
    block after the range.
    """

    oldest: int
    base_fees: list[int]
    gas_used_ratios: list[float]
    blob_base_fees: list[int]
    blob_gas_used_ratios: list[float]
    rewards: list[list[int]] | None
    """One effective tip per percentile for each block; None when no percentiles were requested."""
    rendered: bytes | None = None
    """The result as JSON text. The RPC interface sets this field when it first renders the history."""


class FeeOracle:
    """Suggests prices from recent blocks and the node's minimum prices."""

    def __init__(self, queries: ChainQueries, floor: FeeFloor, sampling: PriceSampling, lanes: Lanes) -> None:
        self._queries = queries
        self._floor = floor
        self._samples = PriceSamples(queries.store, sampling)
        self._lanes = lanes
        self.suggested_tip: int | None = None
        """A fixed priority fee that replaces the median of recent blocks. Presets of the development network set it."""
        self._rewards: OrderedDict[tuple[Hash32, tuple[float, ...]], list[int]] = OrderedDict()
        self._histories: dict[_HistoryKey, FeeHistory] = {}
        self._histories_blocks = 0
        """Number of blocks of all cached results."""
        self._histories_head: Hash32 | None = None

    async def gas_price(self) -> int:
        """Return the capped median of recent gas prices, but at least the minimum gas price and the next base fee.

        With `suggested_tip`, return the next base fee plus this tip.
        """
        if self.suggested_tip is not None:
            return (self._queries.next_base_fee() or 0) + self.suggested_tip
        median, _ = await self._medians()
        floor = max(self._floor.min_gas_price, self._queries.next_base_fee() or 0)
        return floor if median is None else max(min(median, self._samples.sampling.cap), floor)

    async def max_priority_fee(self) -> int:
        """Return `suggested_tip`, or else the median of recent priority fees, but at least the fee that the pool
        requires.
        """
        if self.suggested_tip is not None:
            return self.suggested_tip
        _, median = await self._medians()
        return max(median or 0, self._required_tip())

    def _required_tip(self) -> int:
        """Return the priority fee with which the pool admits a transaction now and in the next few blocks.

        Clients add this fee to the base fee of the newest or the next block, so the fee must suffice for the lower base
        fee.
        """
        queries = self._queries
        following = queries.next_base_fee()
        if following is None:
            return self._floor.required_tip(0)
        newest = queries.head.header.base_fee_per_gas
        lowest = following if newest is None else min(newest, following)
        for _ in range(_HORIZON_BLOCKS):
            lowest -= lowest // 8  # an empty block lowers the base fee by an eighth (EIP-1559)
        return self._floor.required_tip(lowest)

    async def _medians(self) -> tuple[int | None, int | None]:
        queries = self._queries
        head, number = queries.head_hash, queries.head_number
        if self._samples.is_warm(head, number):
            return self._samples.medians(head, number)
        return await self._lanes.read.run(lambda: self._samples.medians(head, number))

    async def fee_history(self, count: int, newest: HashedHeader, percentiles: Sequence[float] | None) -> FeeHistory:
        """Return fees of `count` blocks (fewer near genesis) up to `newest`, a canonical block.

        If the range ends at the head, each reward is at least the priority fee that the pool requires, because clients
        choose their priority fee from these rewards. In a range that ends earlier, the rewards are exact.
        """
        head = self._queries.head_hash
        if self._histories_head != head:
            self._histories.clear()
            self._histories_blocks = 0
            self._histories_head = head
        shares = None if percentiles is None else tuple(percentiles)
        floor = self._floor
        key = (count, newest.hash, shares, floor.min_gas_price, floor.min_priority_fee, self._queries.next_base_fee())
        known = self._histories.get(key)
        if known is None:
            known = await self._read_history(count, newest, shares)
            self._keep(key, known, head)
        return known

    def _keep(self, key: _HistoryKey, history: FeeHistory, head: Hash32) -> None:
        """Cache a history that was read at this head, unless the head has changed or the cache is full."""
        blocks = self._histories_blocks + len(history.gas_used_ratios)
        is_full = len(self._histories) >= _KEPT_HISTORIES or blocks > _KEPT_HISTORY_BLOCKS
        if not is_full and head == self._histories_head == self._queries.head_hash and key not in self._histories:
            self._histories[key] = history
            self._histories_blocks = blocks

    async def _read_history(self, count: int, newest: HashedHeader, shares: tuple[float, ...] | None) -> FeeHistory:
        after = self._after(newest)
        is_suggestion = newest.hash == self._queries.head_hash and after.base_fee_per_gas is not None
        least = self._required_tip() if is_suggestion else 0
        if count <= _FEW_BLOCKS:
            headers = self._headers(count, newest)
            unknown = () if shares is None else (one for one in headers if (one.hash, shares) not in self._rewards)
            if sum(one.header.gas_used for one in unknown) <= SHORT_GAS:
                return self._collect(headers, after, shares, least)
        return await self._lanes.read.run(lambda: self._collect(self._headers(count, newest), after, shares, least))

    def _after(self, newest: HashedHeader) -> Header:
        """Return the header of the block after `newest`: the stored header, or a draft at the head."""
        queries = self._queries
        following = None if newest.hash == queries.head_hash else queries.header(newest.number + 1)
        return queries.next_block().header if following is None else following.header

    def _headers(self, count: int, newest: HashedHeader) -> list[HashedHeader]:
        """Return up to `count` headers that end with `newest`, oldest first."""
        headers = [newest]
        while len(headers) < count and headers[-1].number > 0:
            parent = self._queries.chain.header(headers[-1].parent_hash)
            if parent is None:
                break
            headers.append(parent)
        headers.reverse()
        return headers

    def _collect(
        self, headers: Sequence[HashedHeader], after: Header, percentiles: tuple[float, ...] | None, least: int
    ) -> FeeHistory:
        queries = self._queries
        blocks = [header.header for header in headers]
        maxima = [queries.max_blob_gas(block) for block in blocks]
        return FeeHistory(
            oldest=blocks[0].number,
            base_fees=[block.base_fee_per_gas or 0 for block in (*blocks, after)],
            gas_used_ratios=[block.gas_used / block.gas_limit if block.gas_limit else 0.0 for block in blocks],
            blob_base_fees=[queries.blob_base_fee(block) or 0 for block in (*blocks, after)],
            blob_gas_used_ratios=[
                (block.blob_gas_used or 0) / most if most else 0.0 for block, most in zip(blocks, maxima, strict=True)
            ],
            rewards=None
            if percentiles is None
            else [[max(tip, least) for tip in self._block_rewards(header, percentiles)] for header in headers],
        )

    def _block_rewards(self, header: HashedHeader, percentiles: tuple[float, ...]) -> list[int]:
        key = (header.hash, percentiles)
        known = self._rewards.get(key)
        if known is None:
            known = self._rewards[key] = self._compute_rewards(header, percentiles)
            while len(self._rewards) > _KEPT_REWARDS:
                self._rewards.popitem(last=False)
        return known

    def _compute_rewards(self, header: HashedHeader, percentiles: tuple[float, ...]) -> list[int]:
        """Return the effective tips of a block at these percentiles of its gas. A block without transactions has tips
        of 0.
        """
        if not percentiles:
            return []
        store = self._queries.store
        body = store.body(header.hash)
        receipts = store.raw_receipts(header.hash)
        if body is None or not receipts:
            return [0] * len(percentiles)
        base_fee = header.header.base_fee_per_gas or 0
        gas = [used - before for before, used in pairwise([0, *map(cumulative_gas, receipts)])]
        tips = [
            min(transaction.max_priority_fee_per_gas, transaction.max_fee_per_gas - base_fee)
            for transaction in body.transactions
        ]
        return rewards_at(sorted(zip(tips, gas, strict=True)), header.header.gas_used, percentiles)


def rewards_at(tips: Sequence[tuple[int, int]], gas_used: int, percentiles: Sequence[float]) -> list[int]:
    """Return the tip at which the cumulative gas reaches each percentile. `tips` is a sorted list of (tip, gas)."""
    found = [0] * len(percentiles)
    position = 0
    running = tips[0][1]
    for share, index in sorted((share, index) for index, share in enumerate(percentiles)):
        threshold = int(gas_used * share / 100)
        while running < threshold and position < len(tips) - 1:
            position += 1
            running += tips[position][1]
        found[index] = tips[position][0]
    return found


def cumulative_gas(receipt: bytes) -> int:
    """Return the cumulative gas of an encoded receipt, without decoding the other fields."""
    at = 0 if receipt[0] > _RLP_LONG_STRING else 1  # a typed receipt starts with a type byte, which is skipped
    at += 1 + max(receipt[at] - _RLP_LONG_LIST, 0)
    at += 33 if receipt[at] == _RLP_LONG_STRING else 1
    first = receipt[at]
    if first < _RLP_STRING:
        return first
    return int.from_bytes(receipt[at + 1 : at + 1 + first - _RLP_STRING], "big")
