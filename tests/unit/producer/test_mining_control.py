"""Tests start, stop and settings of block production."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ophion.chain.gas_price import FeeFloor
from ophion.chainspec.genesis import parse_genesis
from ophion.errors import InvalidHeader
from ophion.node.config import NodeConfig
from ophion.producer.block_assembly import MinerSettings
from ophion.producer.mining_control import CoinbaseFixed, CoinbaseNotSet, MiningControl, ProductionUnavailable
from ophion.testing.node_core import COINBASE, TestCore, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import until

B = DEV_KEYS[1]


def run_story(tmp_path: Path, story: Callable[[TestCore], Awaitable[Any]], **options: Any) -> Any:
    with open_core(tmp_path, **options) as core:
        return asyncio.run(story(core))  # type: ignore[arg-type]


def test_mining_starts_and_stops_while_the_service_runs(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        ready = asyncio.Event()
        running = asyncio.create_task(core.mining.run(ready.set))
        await ready.wait()
        assert not core.mining.is_mining
        await core.send(legacy_transaction(B, 0))
        assert core.mining.mined(bytes(32)) is None
        core.mining.start()
        core.mining.start()
        assert core.mining.is_mining
        waiting = core.mining.mined(bytes(32))
        assert waiting is not None
        await waiting
        await until(lambda: core.queries.head_number == 1)
        core.mining.stop()
        assert not core.mining.is_mining
        await asyncio.sleep(0.01)
        await core.send(legacy_transaction(B, 1))
        await asyncio.sleep(0.01)
        assert core.queries.head_number == 1
        core.mining.start()
        await until(lambda: core.queries.head_number == 2)
        running.cancel()
        await asyncio.wait({running})
        assert running.cancelled()

    run_story(tmp_path, story)


def test_mining_needs_a_coinbase(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        assert core.mining.coinbase is None
        with pytest.raises(CoinbaseNotSet, match="Coinbase not set. Unable to start mining without a coinbase"):
            core.mining.start()
        core.mining.set_coinbase(COINBASE)
        core.mining.start()
        assert core.mining.coinbase == COINBASE

    run_story(tmp_path, story, config=NodeConfig())


def test_under_proof_of_authority_the_node_itself_is_rewarded(tmp_path: Path) -> None:
    signer = "00" * 32 + DEV_KEYS[0].address.hex() + "00" * 65
    genesis = parse_genesis(
        f'{{"config":{{"chainId":5,"clique":{{}}}},"difficulty":"0x1","gasLimit":"0x1000000","extraData":"0x{signer}"}}'
    )

    async def story(core: TestCore) -> None:
        assert core.mining.coinbase == DEV_KEYS[0].address
        with pytest.raises(CoinbaseFixed):
            core.mining.set_coinbase(B.address)
        assert await core.mining.get_work() is None
        assert not core.mining.submit_hashrate(1, bytes(32))
        assert not await core.mining.submit_work(1, bytes(32), bytes(32))
        assert core.mining.hashrate == 0

    run_story(tmp_path, story, genesis=genesis)


def test_what_miners_choose_goes_into_the_next_block(tmp_path: Path) -> None:
    async def story(core: TestCore) -> None:
        core.mining.set_extra_data(b"hello")
        core.mining.set_coinbase(B.address)
        header = await core.seal()
        assert (header.header.extra_data, header.header.coinbase) == (b"hello", B.address)
        assert core.mining.extra_data == b"hello"
        with pytest.raises(ValueError, match="33 bytes"):
            core.mining.set_extra_data(bytes(33))

    run_story(tmp_path, story)


def test_without_a_way_of_sealing_mining_cannot_start() -> None:
    control = MiningControl(MinerSettings(COINBASE), FeeFloor(), None, None, None, "ethash+merge")
    with pytest.raises(ProductionUnavailable, match="does not make blocks on a network with ethash\\+merge"):
        control.start()


def test_a_sealer_that_fails_ends_the_service() -> None:
    class Failing:
        hashrate = 0
        guard = None

        async def run(self) -> None:
            raise InvalidHeader("timestamp")

    async def story() -> None:
        control = MiningControl(MinerSettings(COINBASE), FeeFloor(), Failing(), None, None, "ethash")
        control.start()
        with pytest.raises(InvalidHeader):
            await control.run(lambda: None)

    asyncio.run(story())


def test_production_pauses_while_the_node_is_behind(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def story(node: TestCore) -> None:
        control = node.mining
        control.start()
        control.follow(is_in_sync=True)
        assert control.is_mining
        control.follow(is_in_sync=False)
        assert not control.is_mining
        control.follow(is_in_sync=False)
        control.follow(is_in_sync=True)
        assert control.is_mining
        control.stop()
        control.follow(is_in_sync=False)

    with open_core(tmp_path) as node:
        asyncio.run(story(node))
    assert caplog.messages == ["Pausing mining while behind chain head", "Resuming mining operations"]
