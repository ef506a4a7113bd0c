"""The plan of a rolling upgrade: the description of the network, the order of its nodes, turns of proposers."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.cli.upgrade_plan import ProposerTurns, max_offline, ordered_nodes, plan_lines, read_description
from ophion.errors import CommandError

TOML = """
version = "ophion/v2"

[[nodes]]
name = "a"
rpc = "http://127.0.0.1:8545"
role = "validator"

[[nodes]]
name = "b"
rpc = "http://127.0.0.1:8546"
role = "follower"
"""


def _file(path: Path, text: str, name: str = "plan.toml") -> Path:
    file = path / name
    file.write_text(text)
    return file


def test_followers_come_before_validators(tmp_path: Path) -> None:
    description = read_description(_file(tmp_path, TOML))
    assert description.version == "ophion/v2"
    assert [node.name for node in ordered_nodes(description)] == ["b", "a"]
    text = "\n".join(plan_lines(tmp_path / "plan.toml", description, ["0x01"], False, 2.0))
    assert text.index("Step 1. b (follower") < text.index("Step 2. a (validator")
    assert "produces no blocks while one of its validators restarts" in text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nodes = []", "1 to 1000 nodes, not 0"),
        (TOML.replace('"b"', '"a"'), "two nodes have the name 'a'"),
        (TOML.replace("8546", "8545"), "two nodes have the rpc"),
        (TOML.replace("http://127.0.0.1:8546", "ftp://x"), "must be http://HOST:PORT"),
        (TOML.replace('"follower"', '"boss"'), "Invalid enum value 'boss'"),
        (TOML + 'address = "0x12"', "'address' of b is not an address"),
        (TOML + "color = 1", "unknown field `color`"),
        ("nodes = [", "is not a network description"),
    ],
)
def test_a_wrong_description_is_refused_with_its_problem(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(CommandError, match="plan.toml") as refusal:
        read_description(_file(tmp_path, text))
    assert problem in str(refusal.value)


def test_a_description_may_be_json(tmp_path: Path) -> None:
    text = '{"nodes": [{"name": "a", "rpc": "http://h:1", "role": "validator", "address": "0x' + "11" * 20 + '"}]}'
    assert read_description(_file(tmp_path, text, "plan.json")).nodes[0].address == "0x" + "11" * 20
    with pytest.raises(CommandError, match="is not a network description"):
        read_description(_file(tmp_path, "[", "plan.json"))


def test_the_number_of_validators_that_may_be_offline() -> None:
    assert [max_offline(count, False) for count in (1, 3, 4, 7, 50)] == [0, 0, 1, 2, 16]
    assert [max_offline(count, True) for count in (1, 3, 4, 7)] == [0, 1, 1, 3]


def test_a_validator_is_stopped_after_its_own_block() -> None:
    turns = ProposerTurns(("0xa", "0xb", "0xc", "0xd"), "0xb", 5.0)
    assert [turns.blocks_until(one) for one in ("0xa", "0xb", "0xc", "0xd", "0xe")] == [3, 4, 1, 2, None]
    assert turns.advice("0xb") == "Stop it now: it produced the head, its next turn comes in 4 blocks (20 s)."
    assert turns.advice("0xc") == (
        "Wait for 1 block (5 s), until it has produced one. Then stop it: it has 20 s until its next turn."
    )
    assert "stop it at any time" in turns.advice("0xe")
