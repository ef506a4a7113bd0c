"""Tests validators from a contract, in the state after a block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ophion.consensus.bft.engine import BftEngine
from ophion.errors import InvalidHeader
from ophion.node.config import NodeConfig
from ophion.node.validator_contract import read_contracts
from ophion.testing.node_core import open_core
from tests.unit.producer.authority import KEYS, authority_genesis

CONTRACT = "cc" * 20
ONE_ADDRESS = "0x6020600052600160205260005460405260606000f3"
"""Code that returns the address in slot 0 as address[]."""


def members(tmp_path: Path, code: str, value: bytes = KEYS[0].address) -> tuple[bytes, ...]:
    account: dict[str, Any] = {"balance": "0x0", "code": code, "storage": {"0x0": "0x" + value.hex()}}
    genesis = authority_genesis("qbft", [], {CONTRACT: account}, validatorcontractaddress="0x" + CONTRACT)
    with open_core(tmp_path, NodeConfig(), genesis) as node:
        assert isinstance(node.chain.engine, BftEngine)
        return node.chain.engine.members(node.chain.head, node.chain)


def test_what_the_contract_answers(tmp_path: Path) -> None:
    assert members(tmp_path, ONE_ADDRESS) == (KEYS[0].address,)


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("0x60006000fd", "did not answer: reverted"),
        ("0xfe", "did not answer: halted"),
        ("0x00", "not a list of addresses"),
        ("0x6020600052600060205260406000f3", "none named by"),
        ("0x60206000526002602052600054604052602060005260606000f3", "ends before its 2 addresses"),
    ],
)
def test_contracts_that_give_no_answer(tmp_path: Path, code: str, what: str) -> None:
    with pytest.raises(InvalidHeader, match=what):
        members(tmp_path, code)


def test_a_contract_that_is_too_slow_here_says_nothing_about_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ophion.node.validator_contract._DEADLINE_S", 0.0)
    with pytest.raises(InvalidHeader, match="did not answer: timeout") as caught:
        members(tmp_path, "0x5b600056")
    assert caught.value.transient


def test_other_engines_have_no_use_for_contracts(tmp_path: Path) -> None:
    def nowhere(header: Any) -> Any:
        raise AssertionError("asked for a state")

    with open_core(tmp_path) as node:
        read_contracts(node.chain, nowhere)
