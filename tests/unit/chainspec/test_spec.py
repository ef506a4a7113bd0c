"""Tests the chain specification: forks in order, options, refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chainspec.consensus_parameters import EngineKind
from ophion.chainspec.forks import BlobParameters, Milestone
from ophion.chainspec.genesis import parse_genesis
from ophion.chainspec.spec import ChainSpec
from ophion.errors import GenesisError

BLOB = {"target": 1, "max": 2, "baseFeeUpdateFraction": 3}


def spec(config: dict[str, Any]) -> ChainSpec:
    return parse_genesis(json.dumps({"config": config, "difficulty": "0x1", "gasLimit": "0x1388"})).spec


def test_forks_are_read_in_any_capitalisation() -> None:
    result = spec({"ETHASH": {}, "homesteadblock": 1, "LONDONBLOCK": 5, "mergeNetsplitBlock": 7, "shanghaitime": 100})
    assert result.fork_at(1, 0).milestone is Milestone.HOMESTEAD
    assert result.fork_at(5, 0).milestone is Milestone.LONDON
    assert result.fork_at(0, 100).milestone is Milestone.SHANGHAI
    assert (result.fork_blocks, result.fork_times) == ((1, 5, 7), (100,))


@pytest.mark.parametrize("key", ["petersburgBlock", "constantinopleFixBlock", "constantinoplefixblock"])
def test_petersburg_has_two_names(key: str) -> None:
    assert spec({"ethash": {}, key: 0}).fork_at(0, 0).milestone is Milestone.PETERSBURG


def test_two_names_of_petersburg_at_once_are_refused() -> None:
    with pytest.raises(GenesisError, match="petersburgBlock is given too"):
        spec({"ethash": {}, "petersburgBlock": 0, "constantinopleFixBlock": 0})


@pytest.mark.parametrize(
    "config",
    [
        {"homesteadBlock": 5, "eip150Block": 4},
        {"homesteadBlock": 5, "daoForkBlock": 4},
        {"istanbulBlock": 10, "londonBlock": 9},
        {"shanghaiTime": 10, "cancunTime": 9},
        {"osakaTime": 10, "bpo1Time": 9, "blobSchedule": {"bpo1": BLOB}},
    ],
)
def test_forks_must_not_go_back(config: dict[str, Any]) -> None:
    with pytest.raises(GenesisError, match="comes before"):
        spec({"ethash": {}, **config})


@pytest.mark.parametrize("value", ["0", "0x0", 1.5, True, [], -1, 2**64])
def test_fork_points_are_json_numbers(value: Any) -> None:
    with pytest.raises(GenesisError, match=r"Invalid config\.berlinBlock"):
        spec({"ethash": {}, "berlinBlock": value})


@pytest.mark.parametrize(("block", "expected"), [(0, None), (-1, None), (7, 7)])
def test_the_dao_fork_needs_a_block_above_zero(block: int, expected: int | None) -> None:
    assert spec({"ethash": {}, "daoForkBlock": block}).dao_fork_block == expected
    assert spec({"ethash": {}, "daoForkBlock": block, "daoForkSupport": False}).dao_fork_block is None


@pytest.mark.parametrize("key", ["amsterdamTime", "futureEipsTime", "experimentalEipsTime"])
def test_forks_after_osaka_are_refused(key: str) -> None:
    with pytest.raises(GenesisError, match=f"Invalid config.{key} .*not supported"):
        spec({"ethash": {}, key: 0})


@pytest.mark.parametrize(
    ("config", "engine"),
    [
        ({"ethash": {}, "ibft2": {}, "qbft": {}, "clique": {}}, EngineKind.ETHASH),
        ({"ibft2": {}, "ibft": {}, "qbft": {}, "clique": {}}, EngineKind.IBFT2),
        ({"ibft": {}, "qbft": {}, "clique": {}}, EngineKind.IBFT),
        ({"qbft": {}, "clique": {}}, EngineKind.QBFT),
        ({"clique": {}}, EngineKind.CLIQUE),
    ],
)
def test_the_first_engine_in_order_is_taken(config: dict[str, Any], engine: EngineKind) -> None:
    assert spec(config).engine is engine


def test_without_an_engine_there_is_no_network() -> None:
    with pytest.raises(GenesisError, match="^Unknown consensus mechanism defined$"):
        spec({"chainId": 5})


@pytest.mark.parametrize(("value", "expected"), [(5, 5), ("5", 5), ("0x5", 5)])
def test_the_chain_id_may_be_text(value: Any, expected: int) -> None:
    assert spec({"ethash": {}, "chainId": value}).chain_id == expected


def test_the_chain_id_has_a_default_for_each_engine() -> None:
    assert spec({"clique": {}}).chain_id == 4
    assert spec({"ibft2": {}}).chain_id == 1


def test_blob_parameters_come_from_the_schedule() -> None:
    config = {"ethash": {}, "cancunTime": 0, "osakaTime": 5, "bpo1Time": 9}
    result = spec({**config, "blobSchedule": {"Cancun": BLOB, "bpo1": BLOB}})
    assert result.fork_at(0, 0).blobs == result.fork_at(0, 9).blobs == BlobParameters(1, 2, 3)
    assert result.fork_at(0, 5).blobs == BlobParameters(6, 9, 5_007_716)


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ({}, "missing value for 'config.blobSchedule.bpo1'"),
        ({"bpo1": {"target": 1, "max": 2}}, "missing value for 'config.blobSchedule.bpo1.baseFeeUpdateFraction'"),
        ({"bpo1": {**BLOB, "target": 3}}, "above max"),
        ({"bpo1": {**BLOB, "max": 0}}, "must be at least 1"),
        ({"bpo1": 5}, "must be an object"),
    ],
)
def test_a_blob_fork_needs_complete_parameters(schedule: dict[str, Any], problem: str) -> None:
    with pytest.raises(GenesisError, match=problem):
        spec({"ethash": {}, "bpo1Time": 0, "blobSchedule": schedule})


def test_private_network_options_are_read() -> None:
    result = spec(
        {
            "ibft2": {},
            "contractSizeLimit": 2147483647,
            "evmStackSize": 1024,
            "ecCurve": "secp256k1",
            "zeroBaseFee": True,
            "terminalTotalDifficulty": 58750000000000000000000,
            "depositContractAddress": "0x" + "11" * 20,
            "discovery": {"bootnodes": ["enode://x"], "dns": "y"},
        }
    )
    assert result.contract_size_limit == 2147483647
    assert result.zero_base_fee
    assert result.terminal_total_difficulty == 58750000000000000000000
    assert result.deposit_contract == b"\x11" * 20
    assert result.bootnodes == ("enode://x",)


@pytest.mark.parametrize(
    ("config", "place"),
    [
        ({"evmStackSize": 2048}, "config.evmStackSize"),
        ({"ecCurve": "secp256r1"}, "config.ecCurve"),
        ({"contractSizeLimit": 0}, "config.contractSizeLimit"),
        ({"zeroBaseFee": True, "fixedBaseFee": True}, "config.fixedBaseFee"),
        ({"discovery": {"bootnodes": "enode://x"}}, "config.discovery.bootnodes"),
        ({"ethash": 5}, "config.ethash"),
        ({"transitions": []}, "config.transitions"),
        ({"transitions": {"qbft": {}}}, "config.transitions.qbft"),
        ({"transitions": {"qbft": [5]}}, "config.transitions.qbft[0]"),
        ({"blobSchedule": []}, "config.blobSchedule"),
    ],
)
def test_what_cannot_be_is_refused_with_its_path(config: dict[str, Any], place: str) -> None:
    with pytest.raises(GenesisError) as caught:
        spec({"ethash": {}, **config})
    assert caught.value.place == place


def test_clique_ends_with_london_unless_it_merges() -> None:
    with pytest.raises(GenesisError, match="Clique networks end with London"):
        spec({"clique": {}, "londonBlock": 0, "shanghaiTime": 0})
    assert spec({"clique": {}, "shanghaiTime": 0, "terminalTotalDifficulty": 0}).forks.times


def test_the_config_is_kept_as_it_was_written() -> None:
    config = {"chainId": 2018, "ethash": {"fixedDifficulty": 100}, "transitions": {"ibft2": [{"Block": 1}]}}
    assert spec(config).config == config


def test_difficulty_zero_means_merged_only_where_there_is_a_merge() -> None:
    genesis = parse_genesis('{"config": {"ethash": {}, "londonBlock": 0}, "difficulty": 1, "gasLimit": 5000}')
    merged = spec({"ethash": {}, "londonBlock": 0, "terminalTotalDifficulty": 0})
    header = replace(genesis.header(bytes(32)), difficulty=0, number=1)
    assert genesis.spec.fork_of(header).milestone is Milestone.LONDON
    assert merged.fork_of(header).milestone is Milestone.PARIS
