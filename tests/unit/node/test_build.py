"""Components are connected in the right order, and each network gets its block producer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ophion.chainspec.genesis import parse_genesis
from ophion.errors import ConfigError
from ophion.node.build import pool_head
from ophion.node.config import NodeConfig
from ophion.producer.bft_driver import BftDriver
from ophion.producer.clique_sealer import CliqueSealer
from ophion.producer.instant_sealer import InstantSealer
from ophion.producer.interval_sealer import IntervalSealer
from ophion.producer.mining_control import ProductionUnavailable
from ophion.producer.options import MinerConfig
from ophion.producer.pow_miner import PowMiner
from ophion.testing.node_core import COINBASE, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.producer.authority import authority_genesis

ETHASH = b'{"config":{"chainId":9,"londonBlock":0,"ethash":{}},"difficulty":"0x1","gasLimit":"0x1000000"}'
MERGED = (
    b'{"config":{"chainId":9,"londonBlock":0,"terminalTotalDifficulty":0,"ethash":{}},'
    b'"difficulty":"0x0","gasLimit":"0x1000000"}'
)


def test_the_pool_agrees_with_the_head_before_other_listeners_run(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    async def story() -> None:
        core.chain.events.listen(lambda event: seen.append((core.queries.head_number, len(core.pool))))
        await core.mine(legacy_transaction(DEV_KEYS[1], 0))

    with open_core(tmp_path) as core:
        asyncio.run(story())
    assert seen == [(1, 0)]


@pytest.mark.parametrize(
    ("genesis", "period", "sealer"),
    [(None, 0.0, InstantSealer), (None, 2.0, IntervalSealer), (ETHASH, 0.0, PowMiner)],
)
def test_each_network_has_its_way_of_making_blocks(
    tmp_path: Path, genesis: bytes | None, period: float, sealer: type[Any]
) -> None:
    config = NodeConfig(miner=MinerConfig(coinbase=COINBASE, block_period_s=period))
    with open_core(tmp_path, config, genesis and parse_genesis(genesis)) as core:
        assert isinstance(core.mining._sealer, sealer)


@pytest.mark.parametrize(("engine", "sealer"), [("clique", CliqueSealer), ("ibft2", BftDriver), ("qbft", BftDriver)])
def test_members_of_an_authority_make_blocks_in_the_name_of_their_key(
    tmp_path: Path, engine: str, sealer: type[Any]
) -> None:
    genesis = authority_genesis(engine, [DEV_KEYS[0].address])
    with open_core(tmp_path, NodeConfig(), genesis) as core:
        assert isinstance(core.mining._sealer, sealer)
        assert core.mining.coinbase == DEV_KEYS[0].address
        assert (core.core.bft is None) == (engine == "clique")
        assert core.core.proposals is not None


def test_a_merged_network_is_followed_but_not_extended(tmp_path: Path) -> None:
    with open_core(tmp_path, genesis=parse_genesis(MERGED)) as core, pytest.raises(ProductionUnavailable):
        core.mining.start()


def test_a_block_period_belongs_to_the_dev_network(tmp_path: Path) -> None:
    config = NodeConfig(miner=MinerConfig(block_period_s=1.0))
    with (
        pytest.raises(ConfigError, match="--block-period belongs to --network=dev"),
        open_core(tmp_path, config, parse_genesis(ETHASH)),
    ):
        pass


def test_equal_timestamps_belong_to_the_dev_network(tmp_path: Path) -> None:
    config = NodeConfig(miner=MinerConfig(coinbase=COINBASE, equal_timestamps=True))
    with (
        pytest.raises(ConfigError, match="--dev-equal-timestamps belongs to --network=dev"),
        open_core(tmp_path, config, parse_genesis(ETHASH)),
    ):
        pass


def test_the_pool_gets_the_rules_of_the_next_block(tmp_path: Path) -> None:
    with open_core(tmp_path / "dev") as core:
        head = pool_head(core.queries)
        assert (head.fork, head.chain_id, head.base_fee, head.gas_limit) == ("osaka", 2018, 7, 0x1FFFFFFFFFFFFF)
        assert head.init_code_limit == 2 * 2147483647
        assert head.blob_limit == 6
    with open_core(tmp_path / "london", genesis=parse_genesis(ETHASH)) as core:
        head = pool_head(core.queries)
        assert (head.fork, head.base_fee, head.init_code_limit) == ("london", 875_000_000, None)
        assert head.chain_id == 9
    with open_core(tmp_path / "tangerine", genesis=parse_genesis(ETHASH.replace(b"london", b"eip150"))) as core:
        assert pool_head(core.queries).chain_id is None, "EIP-155 comes with the next fork"
        assert head.blob_limit == 0
