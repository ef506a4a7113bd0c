"""Block building: the header matches the execution, and an import accepts the block."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ophion.chain.block import decode_block
from ophion.chain.events import ChainBlock
from ophion.chainspec.dev_network import dev_genesis
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine import BlockPreferences
from ophion.testing.node_core import COINBASE, TestCore, open_core
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction

A, B, C = DEV_KEYS


def told(tmp_path: Path, story: Callable[[TestCore], Awaitable[Any]], **options: Any) -> Any:
    with open_core(tmp_path, **options) as core:
        return asyncio.run(story(core))  # type: ignore[arg-type]


@pytest.mark.parametrize("fork", ["petersburg", "london", "shanghai", "cancun", "prague", "osaka"])
def test_a_built_block_passes_as_if_it_came_from_outside(tmp_path: Path, fork: str) -> None:
    async def build(core: TestCore) -> list[bytes]:
        blocks = []
        for nonce in range(3):
            raws = [legacy_transaction(B, nonce, value=nonce)]
            if fork != "petersburg":
                raws.append(fee_transaction(C, nonce))
            header, _ = await core.mine(*raws)
            block = core.chain.store.block(header.hash)
            assert block is not None
            blocks.append(block)
        return blocks

    async def replay(core: TestCore) -> None:
        for raw in blocks:
            block = decode_block(raw, core.chain.engine)
            core.clock.advance(1)
            imported = await core.core.importer.import_block(ChainBlock(block.header, block.body))
            assert imported.header == core.queries.head

    genesis = dev_genesis(fork)
    blocks = told(tmp_path / "builder", build, genesis=genesis)
    told(tmp_path / "importer", replay, genesis=genesis)


def test_the_coinbase_earns_fees_and_reward(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        before = core.queries.head_state.balance(COINBASE)
        await core.mine(legacy_transaction(B, 0, gas_price=10**9))
        assert core.queries.head_state.balance(COINBASE) == before + 2 * 10**18 + 21_000 * (10**9 - 7)

    told(tmp_path, story)


def test_candidates_that_cannot_be_built_are_named_and_leave_the_pool(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        await core.send(legacy_transaction(B, 0, value=89_999 * 10**18), legacy_transaction(B, 1, value=10**18))
        header = await core.seal()
        assert header.header.gas_used == 21_000
        assert len(core.pool) == 0

    told(tmp_path, story)


def test_what_follows_a_candidate_that_cannot_be_built_waits(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        await core.send(
            legacy_transaction(B, 0, value=89_999 * 10**18),
            legacy_transaction(B, 1, value=10**18),
            legacy_transaction(B, 2),
            legacy_transaction(B, 3),
        )
        header = await core.seal()
        assert header.header.gas_used == 21_000
        assert [item.nonce for item in core.pool.transactions()] == [2, 3]
        assert core.pool.counts() == (0, 2)

    told(tmp_path, story)


def test_what_does_not_fit_waits_for_the_next_block(tmp_path: Path) -> None:
    genesis = parse_genesis(
        b'{"config":{"chainId":2018,"petersburgBlock":0,"ethash":{"fixeddifficulty":1}},"difficulty":"0x1",'
        b'"gasLimit":"100000","alloc":{"627306090abab3a6e1400e9345bc60c78a8bef57":{"balance":"90000000000000000000"},'
        b'"f17f52151ebef6c7334fad080c5704d77216b732":{"balance":"90000000000000000000"}}}'
    )

    async def story(core: TestCore) -> None:
        raws = [legacy_transaction(B, nonce, gas_price=2 * 10**9) for nonce in range(6)]
        await core.send(*raws, legacy_transaction(C, 0, gas=90_000))
        built = await core.core.assembler.assemble(1.0)
        assert built.body.transaction_count == 4
        assert built.skipped == ()
        assert len(core.pool) == 7

    told(tmp_path, story, genesis=genesis)


def test_an_empty_block_can_be_built_on_any_parent(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        await core.mine(legacy_transaction(B, 0))
        genesis = core.chain.genesis
        builder = core.core.assembler._builder
        draft = builder.draft(genesis, BlockPreferences(timestamp=77, author=B.address, extra_data=b"hello"))
        built = builder.fill(draft, core.chain.store.state(genesis.header.state_root), [], 1.0)
        assert (built.header.number, built.header.extra_data, built.header.coinbase) == (1, b"hello", B.address)
        assert built.state.root == built.header.state_root
        assert built.state.balance(B.address) == 90_002 * 10**18

    told(tmp_path, story)


def test_the_gas_limit_moves_towards_the_target(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        before = core.queries.head.header.gas_limit
        core.mining.set_target_gas_limit(10_000_000)
        header = await core.seal()
        assert header.header.gas_limit == before - (before // 1024 - 1)

    told(tmp_path, story)
