"""Tests command lines that the node accepts."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from ophion.quickstart.command_lines import node_options, shown
from ophion.quickstart.plan import Consensus, NetworkPlan
from ophion.quickstart.ports import NetworkPorts, NodePorts
from ophion.runtime.options import warnings_of
from tests.unit.node.command_line import loaded

PORTS = NodePorts(1, 2, 3, 4, 5)


@pytest.mark.parametrize("consensus", Consensus)
@pytest.mark.parametrize("has_permissions", [False, True])
def test_every_option_is_known_and_has_an_effect(consensus: Consensus, has_permissions: bool) -> None:
    plan = NetworkPlan(consensus, 1, 1, None, True, has_permissions)
    layout = NetworkPorts({node.name: PORTS for node in plan.nodes}, 6, {})
    for node in plan.nodes:
        words = shlex.split(shown(node_options(plan, layout, node, Path("a b"))))
        assert words[0] == "ophion"
        read = loaded(*words[1:])
        assert warnings_of(read) == []
        config = read.config
        assert config.data.data_path == Path("a b") / node.name
        assert (config.http.port, config.websocket.port, config.graphql.port, config.metrics.port) == (2, 3, 4, 5)
        assert config.peers.interface == "127.0.0.1"
        assert config.permissions.is_used is has_permissions
        assert config.miner.min_gas_price == 0
