"""Runs public BlockchainTests: the sample in the repository, the whole set if present, and reported failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ophion.vectors.block_test import run_file
from tests.conftest import DATA, shared_files

SAMPLE = DATA / "vectors" / "chains" / "sample.json"
FILES = [SAMPLE, *shared_files("fixtures/ethereum-tests/BlockchainTests")]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_case_of_the_file_passes(path: Path) -> None:
    outcomes = run_file(path)
    assert outcomes
    assert [outcome for outcome in outcomes if not outcome.passed] == []


def spoil_last_block(case: dict[str, Any]) -> None:
    case["lastblockhash"] = "0x" + "00" * 32


def spoil_balance(case: dict[str, Any]) -> None:
    next(iter(case["postState"].values()))["balance"] = "0x07"


def spoil_expectation(case: dict[str, Any]) -> None:
    for block in case["blocks"]:
        block.pop("expectException", None)


def expect_refusal_of_everything(case: dict[str, Any]) -> None:
    for block in case["blocks"]:
        block["expectException"] = "BlockException.ANY"


def spoil_genesis(case: dict[str, Any]) -> None:
    case["genesisBlockHeader"]["hash"] = "0x" + "00" * 32


def forget_blocks(case: dict[str, Any]) -> None:
    del case["blocks"]


def rename_network(case: dict[str, Any]) -> None:
    case["network"] = "Atlantis"


@pytest.mark.parametrize(
    ("case", "spoil", "passed", "detail"),
    [
        ("suicideCoinbaseState_Cancun", spoil_last_block, False, "last block hash: expected 0x0000"),
        ("suicideCoinbaseState_Cancun", spoil_balance, False, "balance of account"),
        ("wrongTimestamp_Cancun", spoil_expectation, False, "expected a valid block, got Invalid header"),
        ("suicideCoinbaseState_Cancun", expect_refusal_of_everything, False, "got a valid block"),
        ("suicideCoinbaseState_Cancun", spoil_genesis, False, "genesis hash"),
        ("suicideCoinbaseState_Cancun", forget_blocks, False, "the case cannot be run"),
        ("suicideCoinbaseState_Cancun", rename_network, None, "network Atlantis is not supported"),
    ],
)
def test_a_spoiled_case_is_noticed(
    tmp_path: Path, case: str, spoil: Callable[[dict[str, Any]], None], passed: bool | None, detail: str
) -> None:
    content = json.loads(SAMPLE.read_text())[case]
    spoil(content)
    path = tmp_path / "spoiled.json"
    path.write_text(json.dumps({case: content}))
    (outcome,) = run_file(path)
    assert outcome.passed is passed
    assert detail in outcome.detail
