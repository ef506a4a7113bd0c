"""Tests current and scheduled forks."""

from __future__ import annotations

from pathlib import Path

from ophion.chainspec.genesis import parse_genesis
from ophion.node.config import NodeConfig
from ophion.rpc.methods.fork_config import fork_id
from tests.unit.rpc.interface import Interface, open_interface

MAINNET = bytes.fromhex("d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3")


def test_fork_ids_are_those_of_eip_2124() -> None:
    assert fork_id(MAINNET, []).hex() == "fc64ec04"
    assert fork_id(MAINNET, [1150000]).hex() == "97c2c34c"
    assert fork_id(MAINNET, [1150000, 1920000]).hex() == "91d1f948"
    assert fork_id(MAINNET, [1150000, 1920000, 2463000, 2675000, 4370000]).hex() == "a00bc324"


def test_a_chain_of_old_rules_has_no_blobs_and_nothing_to_come(sample: Interface) -> None:
    found = sample.ask("eth_config")
    assert (found["next"], found["last"]) == (None, None)
    assert found["current"]["activationTime"] == 0
    assert found["current"]["blobSchedule"] is None
    assert set(found["current"]["precompiles"]) == {"ECREC", "SHA256", "RIPEMD160", "ID"}
    assert found["current"]["systemContracts"] == {}


def test_rules_to_come_are_shown(tmp_path: Path) -> None:
    genesis = parse_genesis(
        '{"config":{"chainId":7,"londonBlock":0,"terminalTotalDifficulty":0,"shanghaiTime":0,"cancunTime":5000,'
        '"pragueTime":9000,"ethash":{}},"difficulty":"0x0","gasLimit":"0x1000000","alloc":{},"baseFeePerGas":"0x7"}'
    )
    with open_interface(tmp_path, genesis, NodeConfig()) as node:
        found = node.ask("eth_config")
    assert [found[name]["activationTime"] for name in ("current", "next", "last")] == [0, 5000, 9000]
    assert found["current"]["blobSchedule"] is None
    assert found["next"]["blobSchedule"]["max"] == 6
    assert "HISTORY_STORAGE_ADDRESS" not in found["next"]["systemContracts"]
    assert "HISTORY_STORAGE_ADDRESS" in found["last"]["systemContracts"]
    assert len({found[name]["forkId"] for name in ("current", "next", "last")}) == 3
