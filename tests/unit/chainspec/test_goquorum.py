from __future__ import annotations

import json
from typing import Any

import pytest

from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.chainspec.spec import EngineKind
from ophion.errors import GenesisError

EXTRA = "0xf83aa00000000000000000000000000000000000000000000000000000000000000000d594" + "93" * 20 + "c080c0"


def _parse(config: dict[str, Any]) -> Genesis:
    document = {
        "config": {"chainId": 1337, "berlinBlock": 0, **config},
        "difficulty": "0x1",
        "gasLimit": "0xf7b760",
        "extraData": EXTRA,
        "mixHash": "0x63746963616c2062797a616e74696e65206661756c7420746f6c6572616e6365",
        "alloc": {},
    }
    return parse_genesis(json.dumps(document))


def test_a_list_of_transitions() -> None:
    spec = _parse(
        {
            "isQuorum": True,
            "qbft": {"epochLength": 30000, "blockPeriodSeconds": 5, "policy": 0, "ceil2Nby3Block": 0},
            "transitions": [
                {"block": 0, "transactionSizeLimit": 64, "contractSizeLimit": 64, "requestTimeoutSeconds": 9},
                {"block": 120, "blockPeriodSeconds": 2, "emptyBlockPeriodSeconds": 60},
                {"block": 130, "transactionSizeLimit": 32},
            ],
        }
    ).spec
    assert spec.engine is EngineKind.QBFT
    assert spec.contract_size_limit == 64 * 1024
    assert spec.zero_base_fee
    assert spec.has_free_gas_limit
    assert spec.qbft is not None
    assert (spec.qbft.block_period_s, spec.qbft.request_timeout_s) == (5, 9)
    (change,) = spec.qbft.transitions
    assert (change.block, change.block_period_s, change.empty_block_period_s) == (120, 2, 60)


@pytest.mark.parametrize(
    "config",
    [
        {"istanbul": {"epoch": 100, "policy": 0, "testQBFTBlock": 0}},
        {"istanbul": {"epoch": 100, "policy": 0}, "transitions": [{"block": 0, "algorithm": "qbft"}]},
        {"qbft": {"epoch": 100}, "maxCodeSizeConfig": [{"block": 0, "size": 32}]},
        {"qbft": {"epochlength": 100}, "maxCodeSize": 32, "txnSizeLimit": 64},
    ],
)
def test_sections_with_the_spellings_of_geth(config: dict[str, Any]) -> None:
    genesis = _parse(config)
    assert genesis.spec.qbft is not None
    assert genesis.spec.qbft.epoch_length == 100
    assert genesis.spec.contract_size_limit in (None, 32 * 1024)
    assert not any("Unknown members" in warning for warning in genesis.warnings)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"istanbul": {"epoch": 100}}, "Istanbul BFT is not supported"),
        ({"istanbul": {"testQBFTBlock": 50}}, "Istanbul BFT is not supported"),
        ({"qbft": {"policy": 1}, "isQuorum": True}, "proposer policy"),
        ({"isQuorum": True}, "Raft is not supported"),
        ({"qbft": {}, "transitions": [{"block": 9, "algorithm": "qbft"}]}, "after block 0"),
        ({"qbft": {}, "transitions": [{"block": 0, "algorithm": "raft"}]}, "raft is not supported"),
        ({"qbft": {}, "transitions": [{"block": 9, "contractSizeLimit": 64}]}, "cannot change"),
        ({"qbft": {}, "maxCodeSizeConfig": [{"block": 5, "size": 32}]}, "cannot change"),
    ],
)
def test_what_ophion_cannot_run_is_refused(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(GenesisError, match=reason):
        _parse(config)


def test_berlin_starts_no_later_than_london() -> None:
    genesis = _parse({"qbft": {}, "isQuorum": True, "berlinBlock": 10_000_000, "londonBlock": 0})
    assert genesis.spec.fork_at(1, 1).name == "london"
    assert any("berlinBlock 10000000 is read as 0" in warning for warning in genesis.warnings)
