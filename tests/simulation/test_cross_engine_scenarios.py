"""Scenarios of consensus.md 6.4, which apply to every engine. Other files have further tests of X-04 and X-05."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.runtime.clock import ManualClock
from ophion.testing.node_core import TestCore
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction
from ophion.testing.virtual_loop import run_virtually
from tests.unit.producer.authority import KEYS, authority_genesis, open_network, running, sealer_of

AUTHORITY = pytest.mark.parametrize("engine", ["clique", "ibft2", "qbft"])
ALL = pytest.mark.parametrize("engine", ["clique", "ibft2", "qbft", "ethash"])
PERIODS = {"blockperiodseconds": 1, "epochlength": 77}


def genesis_object(engine: str, **config: Any) -> dict[str, Any]:
    """Return the genesis document of a network with one validator."""
    first = authority_genesis("clique" if engine == "ethash" else engine, [KEYS[0].address], **PERIODS)
    parameters = {"fixedDifficulty": 100} if engine == "ethash" else PERIODS
    return {
        "config": {"chainId": 2018, **config, engine: parameters},
        "timestamp": hex(int(ManualClock().now())),
        "difficulty": "0x1",
        "gasLimit": "0x1c9c380",
        "extraData": "0x" + first.header(bytes(32)).extra_data.hex(),
        "alloc": {key.address.hex(): {"balance": hex(10**24)} for key in DEV_KEYS},
    }


@ALL
def test_x_01_random_capitals_give_the_same_genesis_hash(engine: str) -> None:
    rng = random.Random(7)

    def shouted(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            "".join(rng.choice((char.upper(), char.lower())) for char in key): shouted(inner)
            for key, inner in value.items()
        }

    plain = genesis_object(engine, berlinBlock=0, londonBlock=5)
    hashes, periods = set(), set()
    for text in (json.dumps(plain), *(json.dumps(shouted(plain)) for _ in range(20))):
        genesis = parse_genesis(text)
        hashes.add(engine_for(genesis.spec).hashed(genesis.header(bytes(32))).hash)
        parameters = genesis.spec.clique or genesis.spec.ibft2 or genesis.spec.qbft
        periods.add(None if parameters is None else parameters.epoch_length)
    assert len(hashes) == 1
    assert periods == {None if engine == "ethash" else 77}


@AUTHORITY
def test_x_02_with_london_the_gas_limit_doubles_and_the_base_fee_starts_as_configured(
    tmp_path: Path, engine: str
) -> None:
    values = genesis_object(engine, londonBlock=3) | {"baseFeePerGas": hex(77 * 10**9)}

    async def story(node: TestCore) -> None:
        async with running(sealer_of(node)):
            await asyncio.sleep(4.5)
        headers = [node.chain.canonical(number) for number in range(5)]
        assert [header.header.gas_limit for header in headers if header] == [30_000_000] * 3 + [60_000_000] * 2
        fees = [header.header.base_fee_per_gas for header in headers if header]
        assert fees == [None, None, None, 77 * 10**9, 77 * 10**9 * 7 // 8]

    play(tmp_path, values, story)


@AUTHORITY
def test_x_03_transactions_that_pay_nothing_are_included_where_the_base_fee_is_zero(
    tmp_path: Path, engine: str
) -> None:
    values = genesis_object(engine, londonBlock=0, zeroBaseFee=True)

    async def story(node: TestCore) -> None:
        node.mining.floor.min_gas_price = 0
        async with running(sealer_of(node)):
            # genesis has a base fee, and from block 1 on the base fee is zero
            await asyncio.sleep(1.5)
            assert node.chain.head.header.base_fee_per_gas == 0
            hashes = await node.send(
                legacy_transaction(DEV_KEYS[0], 0, gas_price=0),
                fee_transaction(DEV_KEYS[1], 0, max_fee=0, tip=0),
            )
            await asyncio.sleep(1)
        assert node.chain.head.number == 2
        assert node.chain.head.header.gas_used == 42_000
        assert [node.chain.store.transaction_position(hash) is not None for hash in hashes] == [True, True]
        assert node.queries.head_state.balance(KEYS[0].address) == 0

    play(tmp_path, values, story)


def play(tmp_path: Path, values: dict[str, Any], story: Any) -> None:
    clock = ManualClock()
    with open_network(tmp_path, parse_genesis(json.dumps(values)), KEYS[:1], clock) as (node,):
        run_virtually(story(node), clock)
