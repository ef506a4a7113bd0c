"""Every attack at a small scale, against nodes of their own: what is refused and what is held, but no times."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator

import pytest

from ophion.testing.process import NodeProcess
from tests.abuse import abuse
from tests.abuse.target import Target

SCALE = 0.02
LIMITS = abuse.Limits(p99_s=math.inf, worst_s=math.inf, rest_share=math.inf)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[NodeProcess, NodeProcess]]:
    # low enough to be reached at a small scale
    few = ("--rpc-http-max-active-connections=80", "--rpc-ws-max-active-connections=60")
    with abuse.nodes(tmp_path_factory.mktemp("abuse"), *few) as running:
        yield running


@pytest.fixture(scope="module")
def target(nodes: tuple[NodeProcess, NodeProcess]) -> Target:
    return abuse.target_of(*nodes, SCALE)


@pytest.mark.parametrize("name", [attack.__name__ for attack in abuse.ATTACKS])
def test_a_node_stands(name: str, nodes: tuple[NodeProcess, NodeProcess], target: Target) -> None:
    assert asyncio.run(abuse.run(target, nodes[0].pid, [name], 0.0, LIMITS, nodes[1].pid)) == []
    assert all(node.is_running for node in nodes)


def test_the_nodes_have_said_what_they_did(nodes: tuple[NodeProcess, NodeProcess]) -> None:
    for node in nodes:
        assert "Traceback" not in node.output()
        assert node.stop() == 0
