"""What a network consists of."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.errors import CommandError
from ophion.quickstart.plan import Consensus, Plan, Role

PLAN = Plan(Consensus.QBFT, 4, 2, None, False, False)


def test_four_validators_and_a_node_for_clients() -> None:
    assert [(node.name, node.role) for node in PLAN.nodes] == [
        ("rpcnode", Role.RPC),
        *((f"validator{number}", Role.VALIDATOR) for number in (1, 2, 3, 4)),
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
        ({"period_s": 0}, "--block-period must be at least one second"),
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
    plan = Plan(Consensus.IBFT2, 7, 1, 8080, True, True)
    (tmp_path / "network.json").write_text(plan.text())
    assert Plan.read(tmp_path / "network.json") == plan


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"consensus":"qbft"}', PLAN.text().replace("4", "400")])
def test_anything_else_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "network.json").write_text(text)
    with pytest.raises(CommandError, match="does not describe a network"):
        Plan.read(tmp_path / "network.json")
