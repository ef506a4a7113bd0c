"""The pool admits every price that clients derive from this node's suggestions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import TypeAlias

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from ophion.chain.fee_oracle import FeeHistory
from ophion.chain.gas_price import FeeFloor
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.clique import CliqueEngine
from ophion.pool.events import Admitted, Origin
from ophion.primitives.types import WEI_PER_GWEI
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction

A, B, C = DEV_KEYS
GWEI = WEI_PER_GWEI


class Prices(Struct):
    """Values that a client can request from a node."""

    gas_price: int
    tip: int
    base_fee: int
    """Base fee of the newest block."""
    history: FeeHistory
    """Fee history of ten blocks, with rewards at one percentile."""


Fees: TypeAlias = tuple[int, int]
"""Max fee and max priority fee per gas; (gas price, -1) for a legacy transaction."""


def foundry(prices: Prices) -> Fees:
    """Return the tip that Foundry chooses: the median of the positive rewards of ten blocks at the 20th percentile, or
    one wei.
    """
    rewards = [block[0] for block in prices.history.rewards or [] if block[0] > 0]
    tip = max(int(median(rewards)) if rewards else 1, 1)
    return 2 * prices.history.base_fees[-2] + tip, tip


def hardhat(prices: Prices) -> Fees:
    """Return the fees that Hardhat chooses. The tip is the newest reward, else the node's suggestion, else one wei."""
    tip = (prices.history.rewards or [[0]])[-1][0] or prices.tip or 1
    return prices.history.base_fees[-1] * 81 // 64 + tip, tip


CLIENTS: dict[str, Callable[[Prices], Fees]] = {
    "ethers 5": lambda prices: (2 * prices.base_fee + 3 * GWEI // 2, 3 * GWEI // 2),
    "ethers 6": lambda prices: (2 * prices.base_fee + prices.tip, prices.tip),
    "ethers 6 without eth_maxPriorityFeePerGas": lambda prices: (2 * prices.base_fee + GWEI, GWEI),
    "viem": lambda prices: (prices.base_fee * 12 // 10 + prices.tip, prices.tip),
    "web3.py": lambda prices: (2 * prices.base_fee + prices.tip, prices.tip),
    "web3.js 4": lambda prices: (2 * prices.base_fee + 5 * GWEI // 2, 5 * GWEI // 2),
    "go-ethereum": lambda prices: (2 * prices.base_fee + prices.tip, prices.tip),
    "go-ethereum, legacy": lambda prices: (prices.gas_price, -1),
    "web3j": lambda prices: (prices.gas_price, -1),
    "Foundry": foundry,
    "Foundry, legacy": lambda prices: (prices.gas_price, -1),
    "Hardhat": hardhat,
}


def network(base_fee: int) -> Genesis:
    """Return a network with one Clique signer and funded accounts. Two transfers fill a block."""
    alloc = {key.address.hex(): {"balance": str(10**24)} for key in DEV_KEYS}
    config = {"chainId": 2018, "londonBlock": 0, "clique": {"blockperiodseconds": 1, "epochlength": 30_000}}
    fields = {"config": config, "difficulty": "0x1", "gasLimit": hex(42_000), "baseFeePerGas": hex(base_fee)}
    extra = "0x" + (bytes(32) + A.address + bytes(65)).hex()
    return parse_genesis(orjson.dumps({**fields, "extraData": extra, "alloc": alloc}))


async def seal(core: TestCore) -> None:
    """Make a block with the pool's transactions and sign it."""
    core.clock.advance(1)
    built = await core.core.assembler.assemble(1.0)
    engine = core.chain.engine
    assert isinstance(engine, CliqueEngine)
    header = engine.attach(built.header, [A.sign(engine.signing_hash(built.header))])
    await core.core.assembler.commit(header, built, core.clock.monotonic())


async def asked(core: TestCore) -> Prices:
    fees, head = core.core.fees, core.chain.head
    history = await fees.fee_history(10, head, [20.0])
    return Prices(await fees.gas_price(), await fees.max_priority_fee(), head.header.base_fee_per_gas or 0, history)


async def refused(core: TestCore, all_fees: Sequence[tuple[str, Fees]]) -> list[str]:
    """Return the clients whose transactions the pool refuses."""
    raws = []
    for nonce, (_, (max_fee, tip)) in enumerate(all_fees):
        legacy = tip == -1
        raws.append(
            legacy_transaction(A, nonce, gas_price=max_fee)
            if legacy
            else fee_transaction(A, nonce, max_fee=max_fee, tip=tip)
        )
    answers = await core.pool.add(raws, Origin.LOCAL)
    return [
        f"{name}: {fees} {answer.error}"
        for (name, fees), answer in zip(all_fees, answers, strict=True)
        if not isinstance(answer, Admitted)
    ]


async def fill(core: TestCore, history: str) -> None:
    """Make ten blocks that are empty, full, or have one transaction with a tip of one wei each."""
    core.mining.floor.min_gas_price = 0
    for number in range(0 if history == "none" else 10):
        enough = 4 * (core.queries.next_base_fee() or 0) + 10
        if history == "full":
            await core.send(*(fee_transaction(key, number, max_fee=enough, tip=5) for key in (B, C)))
        elif history == "low tips":
            await core.send(fee_transaction(B, number, max_fee=enough, tip=1))
        await seal(core)


@pytest.mark.parametrize("history", ["none", "empty", "full", "low tips"])
@pytest.mark.parametrize("minimum", [0, 1000, GWEI])
@pytest.mark.parametrize("base_fee", [0, 1, 7, 900, 1100, GWEI, 100 * GWEI])
def test_what_clients_derive_is_admitted(tmp_path: Path, base_fee: int, minimum: int, history: str) -> None:
    async def story(core: TestCore) -> None:
        await fill(core, history)
        core.mining.floor.min_gas_price = minimum
        prices = await asked(core)
        fees = [(name, derive(prices)) for name, derive in CLIENTS.items()]
        assert await refused(core, fees) == []

    with open_core(tmp_path, genesis=network(base_fee)) as core:
        asyncio.run(story(core))


@pytest.mark.parametrize("blocks", [1, 3, 7])
@pytest.mark.parametrize("base_fee", [7, 1100, GWEI + GWEI // 10])
@pytest.mark.parametrize("minimum", [1000, GWEI])
def test_a_suggestion_outlives_a_few_empty_blocks(tmp_path: Path, minimum: int, base_fee: int, blocks: int) -> None:
    async def story(core: TestCore) -> None:
        core.mining.floor.min_gas_price = minimum
        prices = await asked(core)
        fees = [(name, derive(prices)) for name, derive in CLIENTS.items()]
        for _ in range(blocks):
            await seal(core)
        assert await refused(core, fees) == []

    with open_core(tmp_path, genesis=network(base_fee)) as core:
        asyncio.run(story(core))


def test_a_minimum_priority_fee_is_in_every_suggestion(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        core.mining.floor.min_priority_fee = GWEI
        prices = await asked(core)
        fees = [(name, derive(prices)) for name, derive in CLIENTS.items()]
        assert await refused(core, fees) == []

    with open_core(tmp_path, genesis=network(7)) as core:
        asyncio.run(story(core))


def test_an_older_history_is_exact(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        await seal(core)
        await seal(core)
        older = core.queries.header(1)
        assert older is not None
        assert (await core.core.fees.fee_history(2, older, [50.0])).rewards == [[0], [0]]
        assert (await core.core.fees.fee_history(2, core.chain.head, [50.0])).rewards == [[993], [993]]

    with open_core(tmp_path, genesis=network(7)) as core:
        asyncio.run(story(core))


@given(st.integers(0, 2**64), st.integers(0, 2**64), st.integers(0, 2**64))
def test_the_required_tip_reaches_both_minimums(minimum: int, min_tip: int, base_fee: int) -> None:
    tip = FeeFloor(minimum, min_tip).required_tip(base_fee)
    assert tip >= min_tip
    assert base_fee + tip >= minimum
    assert tip == 0 or tip == min_tip or base_fee + tip == minimum
