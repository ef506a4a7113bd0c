"""Answers of nodes about a migration, and the lines that operators see."""

from __future__ import annotations

from typing import Any

import pytest

from ophion.cli.migration_status import KnownMigration, MigrationSupport, known_migration, migration_lines
from ophion.cli.node_client import RpcNode
from ophion.errors import CommandError
from ophion.runtime.blocking_json_rpc import NoAnswer

NONE, UNKNOWN = KnownMigration(MigrationSupport.NONE), KnownMigration(MigrationSupport.UNKNOWN)


def at(block: int) -> KnownMigration:
    return KnownMigration(MigrationSupport.PLANNED, block)


class Scripted(RpcNode):
    """A node with one scripted answer."""

    def __init__(self, answer: Any) -> None:
        super().__init__("http://127.0.0.1:1")
        self._answer = answer

    def ask(self, method: str, *params: Any) -> Any:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def info(config: Any) -> dict[str, Any]:
    return {"protocols": {"eth": {"config": config}}}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (info({"clique": {}, "qbft": {"startBlock": 70}}), at(70)),
        (info({"ibft2": {}, "qbft": {"startBlock": 7}}), at(7)),
        (info({"clique": {}}), NONE),
        (info({"qbft": {"startBlock": 5}}), NONE),
        (info({"clique": {}, "qbft": {"startBlock": True}}), NONE),
        (info({"clique": {}, "qbft": {"startBlock": "0x5"}}), NONE),
        (info(None), UNKNOWN),
        ("text", UNKNOWN),
        (CommandError("Method not enabled"), UNKNOWN),
    ],
)
def test_a_node_tells_its_migration_by_its_configuration(answer: Any, expected: KnownMigration) -> None:
    assert known_migration(Scripted(answer)) == expected


def test_an_offline_node_is_an_error() -> None:
    with pytest.raises(NoAnswer):
        known_migration(Scripted(NoAnswer("http://127.0.0.1:1", "refused")))


def test_without_a_migration_there_is_nothing_to_say() -> None:
    assert list(migration_lines([("a", 3, NONE), ("b", 3, UNKNOWN)])) == []


def test_a_migration_under_way_names_the_nodes_that_lack_it() -> None:
    lines = list(migration_lines([("http://a", 10, at(20)), ("http://b", 9, NONE), ("http://c", 10, UNKNOWN)]))
    assert lines[0].startswith("A migration to QBFT at block 20 is under way: 9 blocks are left before it, and 1 of 3")
    assert "http://b does not have the migration" in lines[1]
    assert "http://c does not report its rules" in lines[2]


def test_different_blocks_are_reported_and_so_is_the_end() -> None:
    assert "different blocks for the migration to QBFT (20, 30)" in next(
        iter(migration_lines([("a", 10, at(20)), ("b", 10, at(30))]))
    )
    assert list(migration_lines([("a", 19, at(20)), ("b", 25, at(20))])) == [
        "The network has moved to QBFT at block 20."
    ]
