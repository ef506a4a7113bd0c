"""Tests suggested gas prices and the fee history."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ophion.chain.fee_oracle import cumulative_gas, rewards_at
from ophion.chainspec.dev_network import dev_genesis
from ophion.chainspec.genesis import parse_genesis
from ophion.node.access_options import AccessConfig
from ophion.node.config import NodeConfig
from ophion.primitives import rlp
from ophion.producer.options import MinerConfig
from ophion.testing.node_core import COINBASE, TestCore, open_core
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction

A, B, C = DEV_KEYS
LONDON = (
    b'{"config":{"chainId":2018,"londonBlock":0,"ethash":{"fixeddifficulty":1}},"difficulty":"0x1","gasLimit":"0x1000000",'
    b'"alloc":{"627306090abab3a6e1400e9345bc60c78a8bef57":{"balance":"90000000000000000000000"}}}'
)


def told(tmp_path: Path, story: Callable[[TestCore], Awaitable[Any]], **options: Any) -> Any:
    with open_core(tmp_path, **options) as core:
        return asyncio.run(story(core))  # type: ignore[arg-type]


def configured(**access: Any) -> NodeConfig:
    return NodeConfig(miner=MinerConfig(coinbase=COINBASE), access=AccessConfig(**access))


def test_an_idle_chain_suggests_the_minimum(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        assert await core.core.fees.gas_price() == 1000
        assert await core.core.fees.max_priority_fee() == 993, "the base fee is part of what is paid"
        core.mining.floor.min_gas_price = 8
        assert await core.core.fees.gas_price() == 8
        core.mining.floor.min_gas_price = 0
        assert await core.core.fees.gas_price() == 7
        assert await core.core.fees.max_priority_fee() == 0

    told(tmp_path, story)


def test_a_suggested_priority_fee_is_one_the_pool_takes(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        tip = await core.core.fees.max_priority_fee()
        await core.send(fee_transaction(B, 0, max_fee=tip + (core.queries.next_base_fee() or 0), tip=tip))

    told(tmp_path, story)


def test_the_gas_price_is_the_middle_of_recent_ones(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        for nonce, price in enumerate((5000, 9000, 7000)):
            await core.mine(legacy_transaction(B, nonce, gas_price=price))
        assert await core.core.fees.gas_price() == 7000
        await core.mine(fee_transaction(C, 0, max_fee=10**9, tip=4000))
        assert await core.core.fees.gas_price() == 7000, "a fee transaction names no gas price"
        assert await core.core.fees.max_priority_fee() == 4000

    told(tmp_path, story)


def test_old_blocks_are_forgotten_and_suggestions_capped(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        await core.mine(legacy_transaction(B, 0, gas_price=50_000))
        assert await core.core.fees.gas_price() == 20_000
        await core.seal()
        await core.seal()
        assert await core.core.fees.gas_price() == 1000

    told(tmp_path, story, config=configured(gas_price_blocks=2, gas_price_max=20_000))


def test_the_base_fee_is_the_floor_where_there_is_one(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        assert await core.core.fees.gas_price() == core.queries.next_base_fee() == 875_000_000
        assert await core.core.fees.max_priority_fee() == 0

    told(tmp_path, story, genesis=parse_genesis(LONDON))


def test_history_has_one_entry_per_block_and_one_more_base_fee(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        header, _ = await core.mine(legacy_transaction(B, 0, gas_price=5000), fee_transaction(C, 0, tip=2000))
        history = await core.core.fees.fee_history(10, header, [0.0, 50.0, 100.0])
        assert history.oldest == 0
        assert history.base_fees == [7, 7, 7]
        assert history.blob_base_fees == [1, 1, 1]
        assert history.gas_used_ratios == [0.0, 42_000 / header.header.gas_limit]
        assert history.blob_gas_used_ratios == [0.0, 0.0]
        assert history.rewards == [[993, 993, 993], [2000, 2000, 4993]], "an empty block shows what the pool requires"
        older = await core.core.fees.fee_history(1, core.chain.genesis, None)
        assert (older.oldest, len(older.base_fees), older.rewards) == (0, 2, None)

    told(tmp_path, story)


def test_a_long_history_is_the_same_as_its_short_ones(tmp_path: Path) -> None:
    """A short history equals the end of a long history. The event loop reads short histories, and a worker thread reads
    long histories.
    """

    async def story(core: TestCore) -> None:
        for nonce in range(40):
            header, _ = await core.mine(legacy_transaction(B, nonce, gas_price=5000 + nonce))
        fees = core.core.fees
        long = await fees.fee_history(40, header, [50.0])
        short = await fees.fee_history(5, header, [50.0])
        assert (long.oldest, short.oldest) == (1, 36)
        assert long.rewards is not None
        assert short.rewards == long.rewards[-5:]
        assert short.rewards[-1] == [5039 - 7]
        assert (short.base_fees, short.gas_used_ratios) == (long.base_fees[-6:], long.gas_used_ratios[-5:])

    told(tmp_path, story)


def test_before_london_base_fees_are_zero(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        header, _ = await core.mine(legacy_transaction(B, 0, gas_price=5000))
        history = await core.core.fees.fee_history(1, header, [50.0])
        assert history.base_fees == [0, 0]
        assert history.rewards == [[5000]]

    told(tmp_path, story, genesis=dev_genesis("petersburg"))


@pytest.mark.parametrize(
    ("percentiles", "expected"),
    [([0.0], [1]), ([10.0], [1]), ([10.1], [2]), ([60.0, 100.0], [2, 3]), ([100.0, 0.0, 4.0], [3, 1, 1])],
)
def test_rewards_are_weighted_by_gas(percentiles: list[float], expected: list[int]) -> None:
    assert rewards_at([(1, 100), (2, 500), (3, 400)], 1000, percentiles) == expected


@pytest.mark.parametrize("status", [b"\x01", b"", bytes(32)])
@pytest.mark.parametrize("gas", [0, 5, 127, 128, 21_000, 2**40])
@pytest.mark.parametrize("kind", [b"", b"\x02"])
@pytest.mark.parametrize("logs", [[], [[bytes(20), [bytes(32)], bytes(500)]]])
def test_the_gas_of_a_receipt_is_read_in_every_form(status: bytes, gas: int, kind: bytes, logs: Any) -> None:
    assert cumulative_gas(kind + rlp.encode([status, rlp.scalar(gas), bytes(256), logs])) == gas


def test_a_short_history_is_kept_until_head_or_prices_change(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        fees, head = core.core.fees, core.chain.head
        first = await fees.fee_history(5, head, [50.0])
        assert await fees.fee_history(5, head, [50.0]) is first
        assert await fees.fee_history(5, head, [51.0]) is not first
        core.mining.floor.min_gas_price = 5000
        assert (await fees.fee_history(5, head, [50.0])).rewards != first.rewards
        core.mining.floor.min_gas_price = 1000
        await core.mine()
        assert await fees.fee_history(5, head, [50.0]) is not first
        for share in range(100):  # a hundred different requests must not exceed the size limit of the cache
            await fees.fee_history(2, core.chain.head, [float(share)])
        assert len(fees._histories) <= 64

    told(tmp_path, story)


def test_long_histories_are_kept_up_to_a_number_of_blocks(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        for _ in range(99):
            header, _ = await core.mine()
        fees = core.core.fees
        first = await fees.fee_history(100, header, None)
        assert await fees.fee_history(100, header, None) is first
        for share in range(30):
            await fees.fee_history(100, header, [float(share)])
        assert len(fees._histories) == 2048 // 100
        assert fees._histories_blocks == 2000
        header, _ = await core.mine()
        await fees.fee_history(100, header, None)
        assert fees._histories_blocks == 100

    told(tmp_path, story)
