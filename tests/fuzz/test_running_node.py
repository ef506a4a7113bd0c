"""Runs a short fuzzing run against a running node. `make fuzz` runs ten minutes of each kind."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator

import pytest

from ophion.testing.node_process import NodeProcess
from tests.fuzz import running_node

SECONDS = 4.0
SEED = 12


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with running_node.watched_node(tmp_path_factory.mktemp("fuzz")) as running:
        yield running


@pytest.mark.parametrize("kind", running_node.CASES)
def test_nothing_that_is_sent_makes_a_node_fail(kind: str, node: NodeProcess) -> None:
    report = asyncio.run(running_node.fuzzed(kind, node, SECONDS, SEED, longest_s=math.inf))
    assert report.findings == []
    assert report.cases > 0


def test_the_node_stops_in_order(node: NodeProcess) -> None:
    assert node.stop() == 0
