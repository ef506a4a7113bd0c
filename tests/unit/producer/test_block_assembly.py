"""Tests block assembly, which all sealers share."""

from __future__ import annotations

import asyncio
import gc
import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.producer import block_assembly
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction

B, C = DEV_KEYS[1:]


def test_a_block_is_logged_with_transactions_gas_and_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story(core: TestCore) -> bytes:
        header, _ = await core.mine(legacy_transaction(B, 0), legacy_transaction(C, 0))
        return header.hash

    with open_core(tmp_path) as core, caplog.at_level(logging.INFO, "ophion.producer.block_assembly"):
        hash = asyncio.run(story(core))
    assert (
        f"Produced and imported block #1 / 2 tx / 0 om / 42000 (0.0%) gas / (0x{hash.hex()}) in 0.000s" in caplog.text
    )


def test_a_block_stays_within_the_size_that_others_accept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(core: TestCore) -> int:
        await core.send(*(legacy_transaction(B, nonce, data=bytes(4000), gas=200_000) for nonce in range(5)))
        built = await core.core.assembler.assemble(1.0)
        return built.body.transaction_count

    monkeypatch.setattr(block_assembly, "MAX_BLOCK_SIZE", block_assembly.HEADER_BYTES + 13_000)
    with open_core(tmp_path) as core:
        assert asyncio.run(story(core)) == 3


@pytest.mark.parametrize("equal_timestamps", [False, True])
def test_blocks_within_one_second_get_rising_timestamps_and_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, equal_timestamps: bool
) -> None:
    async def story(core: TestCore) -> list[int]:
        return [(await core.seal(seconds=0)).timestamp - int(core.clock.now()) for _ in range(20)]

    config = replace(DEV_CONFIG, miner=replace(DEV_CONFIG.miner, equal_timestamps=equal_timestamps))
    with open_core(tmp_path, config) as core, caplog.at_level(logging.WARNING, "ophion.producer.block_assembly"):
        leads = asyncio.run(story(core))
        assert core.queries.next_block().header.timestamp == core.chain.head.timestamp + (not equal_timestamps)
    assert leads == ([0] * 20 if equal_timestamps else list(range(20)))
    warned = [record.getMessage() for record in caplog.records]
    assert len(warned) == (0 if equal_timestamps else 1)
    assert all("number=12 ahead_s=11" in message and "--dev-equal-timestamps" in message for message in warned)


def test_no_advice_on_equal_timestamps_where_they_are_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(core: TestCore) -> tuple[int, float]:
        await core.seal(seconds=0)
        core.clock.wall -= 100
        return (await core.seal(seconds=0)).timestamp, core.clock.now()

    config = replace(DEV_CONFIG, miner=replace(DEV_CONFIG.miner, equal_timestamps=True))
    with open_core(tmp_path, config) as core, caplog.at_level(logging.WARNING, "ophion.producer.block_assembly"):
        timestamp, now = asyncio.run(story(core))
    assert timestamp > now + 50
    assert not caplog.records


def test_a_chain_ahead_of_the_clock_goes_on_after_a_restart(tmp_path: Path) -> None:
    async def story(core: TestCore) -> int:
        return [await core.seal(seconds=0) for _ in range(30)][-1].timestamp

    def run() -> int:
        with open_core(tmp_path) as core:
            return asyncio.run(story(core))

    first = run()
    gc.collect()  # free the states of the first run, because they would keep the database open
    assert run() == first + 30


def test_a_cancelled_producer_finishes_the_block_that_is_on_its_way(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        await core.send(legacy_transaction(B, 0))
        built = await core.core.assembler.assemble(1.0)
        gate = asyncio.Event()
        importer = core.core.importer
        direct = importer.import_built

        async def slow(*arguments: object) -> object:
            await gate.wait()
            return await direct(*arguments)  # type: ignore[arg-type]

        importer.import_built = slow  # type: ignore[method-assign, assignment]
        committing = asyncio.create_task(core.core.assembler.commit(built.header, built, 0.0))
        await asyncio.sleep(0)
        committing.cancel()
        await asyncio.sleep(0)
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await committing
        assert core.queries.head_number == 1

    with open_core(tmp_path) as core:
        asyncio.run(story(core))


def test_a_clock_far_behind_the_head_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with open_core(tmp_path) as core:
        head = asyncio.run(core.seal(100.0))
        core.core.assembler.check_clock(head)
        core.clock.advance(-9)
        core.core.assembler.check_clock(head)
        assert "clock" not in caplog.text
        core.clock.advance(-51)
        core.core.assembler.check_clock(head)
    assert "clock is behind the head: no block is produced until it catches up number=1 behind_s=60" in caplog.text
