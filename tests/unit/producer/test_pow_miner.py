"""Tests proof of work by internal search and by external miners; the import verifies both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.native.ethash import ethash_compute, ethash_search, ethash_seed
from ophion.producer.pow_miner import PowMiner, WorkPackages
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.thread_pools import InlineLane, ThreadLane
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction

A, B, C = DEV_KEYS


@pytest.fixture
def genesis() -> Genesis:
    """Return a network with real proof of work at a low difficulty."""
    return parse_genesis(
        b'{"config":{"chainId":2018,"petersburgBlock":0,"ethash":{"fixeddifficulty":16}},"difficulty":"0x10",'
        b'"gasLimit":"0x1000000","alloc":{"627306090abab3a6e1400e9345bc60c78a8bef57":{"balance":"1000000000000000000"}}}'
    )


def run_story(tmp_path: Path, story: Callable[[TestCore], Awaitable[Any]], genesis: Genesis | None = None) -> Any:
    with open_core(tmp_path, genesis=genesis) as core:
        return asyncio.run(story(core))  # type: ignore[arg-type]


def solve(seal_hash: bytes, number: int, difficulty: int) -> tuple[int, bytes]:
    found = ethash_search(seal_hash, number, difficulty, 0, 100_000, 1)
    assert found is not None
    return found


def test_the_search_makes_blocks_that_verify(tmp_path: Path, genesis: Genesis) -> None:
    async def story(core: TestCore) -> None:
        lane = ThreadLane("mine", 1, None)
        assembler = core.core.assembler
        miner = PowMiner(WorkPackages(assembler, InlineLane("read")), lane, assembler, SystemEntropy(), 1)
        await core.send(legacy_transaction(B, 0))
        running = asyncio.create_task(miner.run())
        async with asyncio.timeout(30):
            while core.queries.head_number < 2:
                await asyncio.sleep(0.005)
                core.clock.advance(1)
        running.cancel()
        await asyncio.wait({running})
        lane.close()
        assert miner.hashrate == 0
        head = core.queries.header(1)
        assert head is not None
        mix_hash, result = ethash_compute(
            core.chain.engine.signing_hash(head.header), int.from_bytes(head.header.nonce, "big"), 1
        )
        assert mix_hash == head.header.mix_hash
        assert int.from_bytes(result, "big") * 16 <= 2**256
        assert core.queries.head_state.nonce(B.address) == 1

    run_story(tmp_path, story, genesis)


def test_a_search_that_ends_early_is_measured_too(tmp_path: Path, genesis: Genesis) -> None:
    async def story(core: TestCore) -> None:
        assembler = core.core.assembler
        work_packages = WorkPackages(assembler, InlineLane("read"))
        miner = PowMiner(work_packages, InlineLane("mine"), assembler, SystemEntropy(), 1)
        found, _ = await miner._search(await work_packages.candidate(), 5, 100_000)
        assert found is not None
        assert miner.hashrate == int((found[0] - 4) / 1e-6), "the clock of this test stands still"

    run_story(tmp_path, story, genesis)


@pytest.mark.parametrize("is_dev", [False, True])
def test_an_external_miner_gets_work_and_its_nonce_makes_a_block(
    tmp_path: Path, genesis: Genesis, is_dev: bool
) -> None:
    async def story(core: TestCore) -> None:
        mining = core.mining
        assert await mining.get_work() is None, "mining is off"
        mining.start()
        await core.send(legacy_transaction(B, 0))
        work = await mining.get_work()
        assert work is not None
        assert work.seed_hash == ethash_seed(0)
        assert work.target == (2**256 // (100 if is_dev else 16)).to_bytes(32, "big")
        assert await mining.get_work() == work, "the same until something changes"
        nonce, mix_hash = solve(work.seal_hash, 1, 100 if is_dev else 16)
        core.clock.advance(1)
        assert not await mining.submit_work(nonce, bytes(32), mix_hash), "unknown work"
        assert not await mining.submit_work(nonce, work.seal_hash, bytes(32)), "a wrong mix hash"
        bad = next(n for n in range(1000) if int.from_bytes(ethash_compute(work.seal_hash, n, 1)[1], "big") > 2**250)
        assert not await mining.submit_work(bad, work.seal_hash, ethash_compute(work.seal_hash, bad, 1)[0])
        assert core.queries.head_number == 0
        assert await mining.submit_work(nonce, work.seal_hash, mix_hash)
        assert core.queries.head_number == 1
        assert core.queries.head.header.nonce == nonce.to_bytes(8, "big")
        assert core.queries.head_state.nonce(B.address) == 1
        assert not await mining.submit_work(nonce, work.seal_hash, mix_hash), "too late"

    run_story(tmp_path, story, None if is_dev else genesis)


def test_work_is_made_anew_when_the_pool_has_changed_for_a_while(tmp_path: Path, genesis: Genesis) -> None:
    async def story(core: TestCore) -> None:
        core.mining.start()
        first = await core.mining.get_work()
        await core.send(legacy_transaction(B, 0))
        assert await core.mining.get_work() == first, "not at every transaction"
        core.clock.advance(5)
        second = await core.mining.get_work()
        assert second is not None
        assert first is not None
        assert second.seal_hash != first.seal_hash
        core.clock.advance(11)
        third = await core.mining.get_work()
        assert third is not None
        assert third.seal_hash != second.seal_hash, "its timestamp has become old"
        nonce, mix_hash = solve(first.seal_hash, 1, 16)
        assert await core.mining.submit_work(nonce, first.seal_hash, mix_hash), (
            "older work on the same head still counts"
        )

    run_story(tmp_path, story, genesis)


def test_reported_hashrates_add_up_and_expire(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        mining = core.mining
        assert mining.hashrate == 0
        assert mining.submit_hashrate(100, b"a" * 32)
        assert mining.submit_hashrate(50, b"b" * 32)
        assert mining.submit_hashrate(70, b"a" * 32)
        assert mining.hashrate == 120
        core.clock.advance(601)
        assert mining.hashrate == 0

    run_story(tmp_path, story)


def test_a_clock_that_is_set_back_delays_blocks_and_breaks_nothing(
    tmp_path: Path, genesis: Genesis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ophion.producer.pow_miner._PAUSE_S", 0.001)

    async def story(core: TestCore) -> None:
        assembler = core.core.assembler
        work_packages = WorkPackages(assembler, InlineLane("read"))
        miner = PowMiner(work_packages, InlineLane("mine"), assembler, SystemEntropy(), 1)
        running = asyncio.create_task(miner.run())

        async def until(number: int) -> None:
            async with asyncio.timeout(60):
                while core.queries.head_number < number:
                    await asyncio.sleep(0.001)
                    core.clock.advance(1)

        await until(2)
        core.clock.advance(-60)
        await asyncio.sleep(0.05)
        assert not running.done()
        reached = core.queries.head_number
        await until(reached + 2)
        running.cancel()
        await asyncio.wait({running})

    run_story(tmp_path, story, genesis)
