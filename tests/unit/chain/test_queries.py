"""Tests blocks by reference, the pending block, and blocks that are not announced yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ophion.chain.block_builder import BuiltBlock
from ophion.chain.block_environment import EnvOverrides
from ophion.chain.queries import UnknownBlock
from ophion.chainspec.genesis import parse_genesis
from ophion.native.executor import CallRequest, call
from ophion.primitives.types import BlockTag
from ophion.runtime.thread_pools import LaneFull
from ophion.testing.node_core import COINBASE, TestCore, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction

A, B, C = DEV_KEYS
SOMEBODY = bytes([7]) * 20


def told(tmp_path: Path, story: Callable[[TestCore], Awaitable[Any]], **options: Any) -> None:
    with open_core(tmp_path, **options) as core:
        asyncio.run(story(core))  # type: ignore[arg-type]


def ask(core: TestCore, view: Any, code: bytes, overrides: EnvOverrides | None = None) -> int:
    """Run code as a contract creation at a block, and return the resulting word."""
    env = view.env if overrides is None else view.env_with(overrides)
    request = CallRequest(sender=SOMEBODY, to=None, gas=1_000_000, input=code)
    outcome = call(view.state, env, request, (), 1.0)
    assert outcome.kind == "returned", outcome.reason
    return int.from_bytes(outcome.output, "big")


def returning(opcode: str) -> bytes:
    """Return code that runs an opcode and returns its result as 32 bytes."""
    return bytes.fromhex(opcode + "60005260206000f3")


def test_the_head_is_a_set_of_plain_attributes(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        queries = core.queries
        assert (queries.head_number, queries.head_hash) == (0, core.chain.genesis.hash)
        header, _ = await core.mine(legacy_transaction(B, 0, to=SOMEBODY, value=5))
        assert queries.head == header
        assert (queries.head_number, queries.head_hash) == (1, header.hash)
        assert queries.head_state.balance(SOMEBODY) == 5
        assert queries.latest.header == header.header

    told(tmp_path, story)


def test_tags_numbers_and_hashes_name_blocks(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        first, _ = await core.mine(legacy_transaction(B, 0))
        second = await core.seal()
        queries = core.queries
        assert queries.header(BlockTag.EARLIEST) == core.chain.genesis
        assert queries.header(BlockTag.LATEST) == second
        assert queries.header(BlockTag.PENDING) == second
        assert queries.header(1) == first
        assert queries.header(2) == second
        assert queries.header(first.hash) == first
        assert queries.header(second.hash) == second
        assert queries.header(3) is None
        assert queries.header(-1) is None
        assert queries.header(bytes(32)) is None
        assert queries.is_canonical(first)

    told(tmp_path, story)


def test_safe_and_finalized_mean_nothing_under_proof_of_work(tmp_path: Path) -> None:
    genesis = parse_genesis(b'{"config":{"chainId":7,"ethash":{}},"difficulty":"0x1","gasLimit":"0x1c9c380"}')

    async def story(core: TestCore) -> None:
        for tag in (BlockTag.SAFE, BlockTag.FINALIZED):
            with pytest.raises(UnknownBlock, match="Unknown block"):
                core.queries.header(tag)
        assert core.queries.with_total_difficulty

    told(tmp_path, story, genesis=genesis)


def test_safe_and_finalized_are_the_head_of_the_dev_network(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        head, _ = await core.mine(legacy_transaction(B, 0))
        assert core.queries.header(BlockTag.SAFE) == core.queries.header(BlockTag.FINALIZED) == head

    told(tmp_path, story)


def test_safe_and_finalized_are_the_head_where_the_genesis_names_a_terminal_difficulty(tmp_path: Path) -> None:
    genesis = parse_genesis(
        b'{"config":{"chainId":7,"londonBlock":0,"shanghaiTime":0,"terminalTotalDifficulty":0,"ethash":{}},'
        b'"difficulty":"0x0","gasLimit":"0x1c9c380"}'
    )

    async def story(core: TestCore) -> None:
        assert core.queries.header(BlockTag.SAFE) == core.chain.genesis
        assert core.queries.header(BlockTag.FINALIZED) == core.chain.genesis
        assert not core.queries.with_total_difficulty

    told(tmp_path, story, genesis=genesis)


def test_a_view_has_the_state_and_the_environment_of_its_block(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        await core.mine(legacy_transaction(B, 0, to=SOMEBODY, value=1))
        await core.mine(legacy_transaction(B, 1, to=SOMEBODY, value=1))
        views = [core.queries.view(number) for number in range(3)]
        assert [view.state.balance(SOMEBODY) for view in views if view] == [0, 1, 2]
        assert [ask(core, view, returning("43")) for view in views] == [0, 1, 2]
        assert ask(core, views[2], returning("41")) == int.from_bytes(COINBASE, "big")
        assert views[2] is core.queries.latest
        assert core.queries.view(9) is None

    told(tmp_path, story)


def test_a_call_may_replace_fields_of_the_environment(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        latest = core.queries.latest
        overrides = EnvOverrides(
            number=99, timestamp=1234, gas_limit=5_000_000, beneficiary=SOMEBODY, mix_hash=b"\x05" * 32, base_fee=17
        )
        for opcode, expected in (("43", 99), ("42", 1234), ("45", 5_000_000), ("48", 17)):
            assert ask(core, latest, returning(opcode), overrides) == expected
        assert ask(core, latest, returning("41"), overrides) == int.from_bytes(SOMEBODY, "big")
        assert ask(core, latest, returning("44"), overrides) == int.from_bytes(b"\x05" * 32, "big")
        assert ask(core, latest, returning("4a"), EnvOverrides(blob_base_fee=12)) >= 12

    told(tmp_path, story)


def test_the_pending_block_is_built_from_the_pool_and_kept_until_something_changes(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        queries = core.queries
        empty = await queries.pending()
        assert (empty.header.number, empty.hash, empty.body.transaction_count) == (1, None, 0)
        assert await queries.pending() is empty
        assert queries.pending_now is empty
        await core.send(legacy_transaction(B, 0, to=SOMEBODY, value=3))
        assert queries.pending_now is None
        filled = await queries.pending()
        assert filled.body.transaction_count == 1
        assert filled.state.balance(SOMEBODY) == 3
        assert queries.head_state.balance(SOMEBODY) == 0
        assert ask(core, filled, returning("43")) == 1
        assert await queries.find(BlockTag.PENDING) is filled
        await core.seal()
        assert queries.pending_now is None
        after = await queries.pending()
        assert (after.header.number, after.body.transaction_count) == (2, 0)

    told(tmp_path, story)


def test_looking_at_the_pending_block_leaves_the_pool_alone(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        await core.send(legacy_transaction(B, 0, value=89_999 * 10**18), legacy_transaction(B, 1, value=10**18))
        pending = await core.queries.pending()
        assert pending.body.transaction_count == 1
        assert len(core.pool) == 2

    told(tmp_path, story)


def test_callers_share_one_build_of_the_pending_block(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        first, second = await asyncio.gather(core.queries.pending(), core.queries.pending())
        assert first is second

    told(tmp_path, story)


def test_however_often_the_pool_changes_one_pending_block_is_built_at_a_time(tmp_path: Path) -> None:
    """Each change of the pool invalidates the pending block. Many requests must not fill a worker queue with builds of
    pending blocks.
    """

    async def story(core: TestCore) -> None:
        queries, gate, running, most = core.queries, asyncio.Event(), 0, 0
        build = queries._build_pending
        assert build is not None
        built = 0

        async def slowly() -> BuiltBlock:
            nonlocal running, most, built
            running, built = running + 1, built + 1
            most = max(most, running)
            await gate.wait()
            running -= 1
            return await build()

        queries.serve_pending(slowly)
        asking = []
        for nonce in range(10):
            asking.append(asyncio.create_task(queries.pending()))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            await core.send(legacy_transaction(B, nonce))
        gate.set()
        views = await asyncio.gather(*asking)
        assert (most, built) == (1, 2), "the one that ran, and one for all who came after"
        # the later builds start after the last transaction was sent, so they include every transaction
        assert [view.body.transaction_count for view in views[1:]] == [10] * 9

    told(tmp_path, story)


def test_a_pending_block_that_could_not_be_built_is_tried_again(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        queries = core.queries
        build = queries._build_pending
        assert build is not None

        async def refused() -> BuiltBlock:
            raise LaneFull("read", 1)

        queries.serve_pending(refused)
        with pytest.raises(LaneFull):
            await queries.pending()
        queries.serve_pending(build)
        assert (await queries.pending()).header.number == 1

    told(tmp_path, story)


def test_the_next_and_the_pending_block_follow_the_clock(tmp_path: Path) -> None:
    """A contract may wait for a time. A client that waits too sees the result before another block is made."""

    async def story(core: TestCore) -> None:
        queries = core.queries
        following, pending = queries.next_block(), await queries.pending()
        core.clock.advance(10)
        assert queries.pending_now is None
        assert queries.next_block().header.timestamp == following.header.timestamp + 10
        assert (await queries.pending()).header.timestamp == pending.header.timestamp + 10
        assert queries.next_block() is queries.next_block()

    told(tmp_path, story)


def test_the_next_block_has_prices_and_an_environment(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        queries = core.queries
        assert queries.next_base_fee() == 7
        assert queries.next_blob_base_fee() == 1
        assert queries.next_block() is queries.next_block()
        assert queries.next_block().header.number == 1
        before = queries.next_block().env
        await core.seal()
        assert queries.next_block().env is not before
        assert queries.max_blob_gas(queries.head.header) == 9 * 2**17

    told(tmp_path, story)


def test_mined_transactions_are_found_by_hash(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        header, [hash] = await core.mine(legacy_transaction(B, 0))
        queries = core.queries
        assert queries.transaction_position(hash) == (header.hash, 1, 0)
        assert hash.hex().encode() in (queries.transaction_json(hash) or b"")
        assert hash.hex().encode() in (queries.receipt_json(hash, False) or b"")
        assert queries.receipt_json(bytes(32), False) is None
        assert queries.transaction_json(bytes(32)) is None

    told(tmp_path, story)


def test_a_block_on_disk_is_not_shown_before_it_is_announced(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        [hash] = await core.send(legacy_transaction(B, 0))
        seen: list[object] = []

        def in_between(event: object) -> None:
            # the chain calls this function after it has written the block and before it notifies `Queries`
            seen.extend((core.queries.receipt_json(hash, False), core.queries.header(1), core.queries.head_number))

        core.chain.events._callbacks.insert(0, in_between)
        header = await core.seal()
        assert seen == [None, None, 0]
        assert core.queries.header(header.hash) == header

    told(tmp_path, story)
