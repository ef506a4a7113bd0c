"""Tests the nodes and tools of a network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.errors import CommandError
from ophion.quickstart.plan import Consensus, NetworkPlan, PlannedRole

PLAN = NetworkPlan(Consensus.QBFT, 4, 2, None, False, False)


def test_four_validators_and_a_node_for_clients() -> None:
    assert [(node.name, node.role) for node in PLAN.nodes] == [
        ("rpcnode", PlannedRole.RPC),
        *((f"validator{number}", PlannedRole.VALIDATOR) for number in (1, 2, 3, 4)),
    ]
    assert [node.name for node in replace(PLAN, consensus=Consensus.DEV, validators=1).nodes] == [
        "rpcnode",
        "minernode",
    ]


def test_members_come_with_privacy() -> None:
    names = [node.name for node in replace(PLAN, has_privacy=True).nodes]
    assert names[-3:] == ["member1", "member2", "member3"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"validators": 0}, "--validators must be between 1 and 50"),
        ({"validators": 51}, "--validators must be between 1 and 50"),
        ({"period_s": 0}, "--block-period must be at least 0.1 seconds"),
        ({"period_s": 0.05}, "--block-period must be at least 0.1 seconds"),
        ({"period_s": float("inf")}, "--block-period must be at least 0.1 seconds"),
        ({"consensus": Consensus.CLIQUE, "period_s": 0.5}, "--block-period must be at least 0.1 seconds"),
        ({"consensus": Consensus.CLIQUE, "period_s": 1.5}, "--block-period must be whole seconds"),
        ({"consensus": Consensus.DEV}, "--validators has no meaning"),
        ({"consensus": Consensus.DEV, "validators": 1, "has_permissions": True}, "--permissions needs"),
        ({"consensus": Consensus.DEV, "validators": 1, "has_privacy": True}, "--privacy needs"),
    ],
)
def test_what_cannot_be_is_said(changed: dict[str, object], words: str) -> None:
    (problem,) = replace(PLAN, **changed).problems()  # type: ignore[arg-type]
    assert words in problem


def test_blocks_at_once_are_for_the_development_network() -> None:
    assert list(replace(PLAN, consensus=Consensus.DEV, validators=1, period_s=0).problems()) == []


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = NetworkPlan(Consensus.IBFT2, 7, 1, 8080, True, True)
    (tmp_path / "network.json").write_text(plan.text())
    assert NetworkPlan.read(tmp_path / "network.json") == plan


@pytest.mark.parametrize(("period_s", "written"), [(2.0, "2"), (0.2, "0.2")])
def test_whole_periods_are_written_without_a_fraction(period_s: float, written: str) -> None:
    assert f'"period_s": {written},' in replace(PLAN, period_s=period_s).text()


def changed(**members: object) -> str:
    return json.dumps(json.loads(PLAN.text()) | members)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '"qbft"',
        "1E400",
        '{"consensus":"qbft"}',
        "[" * 100_000,
        PLAN.text()[:-5],
        PLAN.text().replace("4", "400"),
        PLAN.text().replace("4", "4.5"),
        PLAN.text().replace("4", "9" * 5000),
        PLAN.text().replace("2", "1E400"),
        PLAN.text() + " " * 2_000_000,
        changed(consensus=["qbft"]),
        changed(validators="4"),
        changed(validators=True),
        changed(period_s=0.01),
        changed(period_s="2"),
        changed(period_s=None),
        changed(port="8080"),
        changed(port=70_000),
        changed(port=-1),
        changed(has_free_gas="no"),
        changed(has_permissions=[]),
        changed(has_privacy=None),
        changed(another=1),
    ],
)
def test_anything_else_is_refused_in_one_line_that_says_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "network.json").write_text(text)
    with pytest.raises(CommandError, match="does not describe a network") as refused:
        NetworkPlan.read(tmp_path / "network.json")
    message = str(refused.value)
    assert message.startswith(f"{tmp_path}/network.json does not describe a network (")
    assert message.endswith(f"): put it back as it was, or delete {tmp_path} to create another there.")
    assert "\n" not in message
    assert "not supported between" not in message
    assert len(message) < 1000


def test_what_is_no_text_is_refused_too(tmp_path: Path) -> None:
    (tmp_path / "network.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CommandError, match="does not describe a network"):
        NetworkPlan.read(tmp_path / "network.json")


def test_a_plan_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Plans written before private transactions existed can still be read."""
    found = json.loads(PLAN.text())
    del found["has_privacy"]
    (tmp_path / "network.json").write_text(json.dumps(found))
    assert NetworkPlan.read(tmp_path / "network.json") == PLAN
