"""A development node makes the block of a single transaction on the event loop, and all other blocks in a worker
thread.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.dev.sealer import DevSealer
from ophion.errors import PoolRejected
from ophion.native.transactions import Transaction, decode_transactions
from ophion.node.interface_options import CHEAT_CODES, HttpConfig
from ophion.node.storage_options import StorageConfig
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import until

A, B, C = DEV_KEYS
CONFIG = replace(
    DEV_CONFIG,
    http=HttpConfig(enabled=True, groups=tuple(CHEAT_CODES)),
    storage=StorageConfig(durable=False),
)


def sealed(tmp_path: Path, story: Callable[[TestCore, DevSealer], Awaitable[None]]) -> None:
    """Run a test scenario while the sealer of a core with cheat codes runs."""

    async def body(core: TestCore) -> None:
        dev = core.core.dev
        assert dev is not None
        running = asyncio.create_task(dev.sealer.run())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        try:
            await story(core, dev.sealer)
        finally:
            running.cancel()
            await asyncio.wait({running})

    with open_core(tmp_path, config=CONFIG) as core:
        asyncio.run(body(core))


def test_a_transaction_that_comes_alone_is_mined_when_its_sender_is_answered(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        for nonce in range(3):
            await core.send(legacy_transaction(B, nonce))
            assert core.queries.head_number == nonce + 1
            assert not len(core.pool)
            sealer.note_lookup()

    sealed(tmp_path, story)


def test_a_transaction_after_a_stop_is_not_mined(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        # no turn of the event loop lies between the stop and the transaction, as in a batch of requests
        sealer.enable(False)
        await core.send(legacy_transaction(B, 0))
        await asyncio.sleep(0.01)
        assert (core.queries.head_number, len(core.pool)) == (0, 1)
        sealer.enable(True)
        await until(lambda: core.queries.head_number == 1)

        sealer.set_mode(is_automatic=False, interval_s=0)
        await core.send(legacy_transaction(B, 1))
        await asyncio.sleep(0.01)
        assert (core.queries.head_number, len(core.pool)) == (1, 1)
        sealer.set_mode(is_automatic=True, interval_s=0)
        await until(lambda: core.queries.head_number == 2)

    sealed(tmp_path, story)


def test_no_block_is_made_on_the_loop_while_the_write_lane_works(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        assert sealer.write_lane is not None
        sealer.write_lane.waiting = 1  # type: ignore[misc]  # `waiting` of an InlineLane is a plain attribute
        sending = asyncio.ensure_future(core.send(legacy_transaction(B, 0)))
        for _ in range(3):
            await asyncio.sleep(0)
        sealer.write_lane.waiting = 0  # type: ignore[misc]
        await sending
        assert core.queries.head_number == 1

    sealed(tmp_path, story)


def decoded(nonce: int, gas: int = 21_000) -> Transaction:
    (one,) = decode_transactions([legacy_transaction(B, nonce, gas=gas)])
    assert isinstance(one, Transaction)
    return one


def test_an_early_answer_comes_before_the_block_and_requests_wait_for_it(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        for nonce in range(3):
            sending = core.pool.send_decoded(decoded(nonce), takes_early_answer=True)
            assert sending.done()
            assert core.queries.head_number == nonce
            time.sleep(0.02)  # noqa: ASYNC251  # another process may run here
            assert sealer.block_priority.is_on
            await asyncio.sleep(0)
            assert core.queries.head_number == nonce + 1
            assert not sealer.block_priority.is_on
            assert not len(core.pool)
            assert await sending == decoded(nonce).hash
            sealer.note_lookup()

    sealed(tmp_path, story)


def test_a_receipt_requested_right_after_an_early_answer_is_there(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        hash = await core.pool.send_decoded(decoded(0), takes_early_answer=True)
        await sealer.mined(hash)
        assert core.queries.head_number == 1

    sealed(tmp_path, story)


def test_a_transaction_with_much_gas_is_mined_before_its_answer(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        core.pool.send_decoded(decoded(0, gas=1_000_001), takes_early_answer=True)
        assert core.queries.head_number == 1
        assert not sealer.block_priority.is_on

    sealed(tmp_path, story)


def test_a_refused_transaction_gets_no_early_answer(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        with pytest.raises(PoolRejected):
            await core.pool.send_decoded(decoded(0, gas=20_000), takes_early_answer=True)
        assert not sealer.block_priority.is_on

    sealed(tmp_path, story)


def test_a_stop_after_an_early_answer_leaves_the_transaction_in_the_pool(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        assert core.pool.send_decoded(decoded(0), takes_early_answer=True).done()
        sealer.enable(False)
        await asyncio.sleep(0.01)
        assert (core.queries.head_number, len(core.pool)) == (0, 1)
        sealer.enable(True)
        await until(lambda: core.queries.head_number == 1)

    sealed(tmp_path, story)


def test_two_transactions_after_an_early_answer_share_a_block(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        answers = [core.pool.send_decoded(decoded(nonce), takes_early_answer=True) for nonce in range(3)]
        assert [answer.done() for answer in answers] == [True, False, False]
        await asyncio.gather(*answers)
        await until(lambda: not len(core.pool))
        assert core.queries.head_number in (1, 2)
        assert not sealer.block_priority.is_on

    sealed(tmp_path, story)


def test_a_transaction_that_cannot_be_mined_leaves_the_chain_as_it_is(tmp_path: Path) -> None:
    async def story(core: TestCore, sealer: DevSealer) -> None:
        await core.send(legacy_transaction(B, 1))
        assert core.queries.head_number == 0
        await core.send(legacy_transaction(B, 0))
        await until(lambda: not len(core.pool))

    sealed(tmp_path, story)
