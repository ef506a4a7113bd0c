"""What the doctor says about a network, given what its nodes answer; asked over real HTTP in tests/integration."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from ophion.cli.doctor import CheckedNode, examine, verdict
from ophion.cli.main import main

A, B, C, D = (f"0x{byte * 20}" for byte in ("aa", "bb", "cc", "dd"))


def status(disconnected: list[str], **members: Any) -> dict[str, Any]:
    return {
        "phase": "waiting for round changes",
        "validators": [A, B, C, D],
        "quorum": 3,
        "disconnected": disconnected,
        "explanation": ["Waiting for 1 more request for round 3."],
        "members": [{"address": B, "clockAheadSeconds": None, "isPassedOver": False, **members}],
    }


def patient(**changes: Any) -> CheckedNode:
    usual = CheckedNode("http://a", "ophion", 7, "0x07", 1.0, 3, status=status([]), grown=1)
    return dataclasses.replace(usual, **changes)


def test_a_network_that_makes_blocks_is_well() -> None:
    assert verdict([patient(), patient(url="http://b")]) == (True, ["The network makes blocks."])


def test_nobody_answers() -> None:
    is_well, lines = verdict([CheckedNode("http://a", problem="Connection refused")])
    assert not is_well
    assert lines[0] == "http://a does not answer: Connection refused"
    assert "Start the nodes" in lines[1]


def test_too_few_validators_are_named() -> None:
    is_well, lines = verdict([patient(grown=0, age_s=90.0, status=status([C, D]))])
    assert not is_well
    assert "No new block came; the latest is number 7, 90 s old." in lines
    assert f"3 of 4 validators are needed and 2 can be reached. Start or connect at least 1 of: {C}, {D}." in lines


def test_a_validator_that_one_of_them_reaches_is_not_missing() -> None:
    pair = [patient(grown=0, status=status([C, D])), patient(grown=0, status=status([D]))]
    assert any("Enough validators" in line for line in verdict(pair)[1])


def test_wrong_clocks_silent_validators_forks_and_syncing_are_told() -> None:
    lines = verdict([patient(status=status([], clockAheadSeconds=5.2))])[1]
    assert f"The clock of validator {B} is about 5 s ahead of others: set it right." in lines
    lines = verdict([patient(status=status([], isPassedOver=True))])[1]
    assert f"Validator {B} is silent and passed over until it is heard again." in lines
    is_well, lines = verdict([patient(), patient(head="0x70")])
    assert not is_well
    assert any("different blocks 7" in line for line in lines)
    assert any("synchronising" in line for line in verdict([patient(is_syncing=True)])[1])
    assert any("no peers" in line for line in verdict([patient(peers=0), patient()])[1])
    assert any("API group" in line for line in verdict([patient(status=None, grown=0)])[1])
    assert "No new block came; there is none yet." in verdict([patient(height=0, age_s=1.8e9, grown=0)])[1]


def test_a_node_that_is_not_there_is_a_patient_with_a_problem() -> None:
    found = examine("http://127.0.0.1:1", 0.0)
    assert found.problem is not None
    assert found.height == -1


def test_somebody_has_to_be_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 1
    assert "Missing required option: '--rpc=URL[,URL...]'" in capsys.readouterr().err
