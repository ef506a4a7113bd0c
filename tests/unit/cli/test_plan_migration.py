"""Refusals of a plan to migrate to QBFT before any node is queried. tests/integration tests plans with real nodes."""

from __future__ import annotations

import json
from pathlib import Path

from ophion.testing.network import member_key, network_genesis
from tests.integration.command import ophion


def written(path: Path, engine: str) -> Path:
    target = path / "genesis.json"
    target.write_text(json.dumps(network_genesis(engine, [member_key(index).address for index in range(4)])))
    return target


def test_a_qbft_network_has_nothing_to_plan(tmp_path: Path) -> None:
    ophion(
        "operator", "plan-migration", f"--genesis-file={written(tmp_path, 'qbft')}", "--rpc=http://127.0.0.1:1"
    ).failed("only Clique and IBFT 2.0 move to QBFT")


def test_nodes_are_needed_and_must_answer(tmp_path: Path) -> None:
    genesis = f"--genesis-file={written(tmp_path, 'clique')}"
    ophion("operator", "plan-migration", genesis).failed("Missing required option: '--rpc=URL[,URL...]'")
    ophion("operator", "plan-migration", genesis, "--rpc=http://127.0.0.1:1").failed("does not answer")


def test_a_validator_must_be_an_address_and_named_once(tmp_path: Path) -> None:
    genesis, rpc = f"--genesis-file={written(tmp_path, 'clique')}", "--rpc=http://127.0.0.1:1"
    one = "0x" + "11" * 20
    ophion("operator", "plan-migration", genesis, rpc, "--validators=0x12").failed("is not an address")
    ophion("operator", "plan-migration", genesis, rpc, f"--validators={one},{one}").failed("names an address twice")
