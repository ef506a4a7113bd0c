"""Ports: those of the table, or free ones."""

from __future__ import annotations

import socket

import pytest
from msgspec.structs import replace

from ophion.errors import CommandError
from ophion.quickstart import layout as layout_module
from ophion.quickstart.layout import NodePorts, lay_out
from ophion.quickstart.plan import Consensus, Plan

PLAN = Plan(Consensus.QBFT, 2, 2, None, False, False)


def test_the_table_where_everything_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_module, "_is_free", lambda port: True)
    found = lay_out(PLAN, ("prometheus",))
    assert found.nodes == {
        "rpcnode": NodePorts(30303, 8545, 8546, 8547, 9545),
        "validator1": NodePorts(30311, 21001, 22001, 23001, 9551),
        "validator2": NodePorts(30312, 21002, 22002, 23002, 9552),
    }
    assert (found.proxy, found.tools, found.address) == (8080, {"prometheus": 9090}, "127.0.0.1:8080")


def test_ports_of_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_module, "_is_free", lambda port: True)
    nodes = lay_out(replace(PLAN, has_privacy=True), ()).nodes
    assert nodes["member1"] == NodePorts(30321, 20000, 20001, 23101, 9561)
    assert nodes["member3"] == NodePorts(30323, 20004, 20005, 23103, 9563)


def test_a_taken_port_is_replaced_by_a_free_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_module, "_is_free", lambda port: port not in (8545, 8080))
    found = lay_out(PLAN, ())
    assert found.nodes["rpcnode"].http != 8545
    assert found.nodes["rpcnode"].websocket == 8546
    assert found.proxy != 8080
    ports = [found.proxy, *(port for node in found.nodes.values() for port in _all(node))]
    assert len(set(ports)) == len(ports)


def _all(ports: NodePorts) -> tuple[int, ...]:
    return ports.p2p, ports.http, ports.websocket, ports.graphql, ports.metrics


def test_a_port_that_was_asked_for_is_not_replaced() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        port = one.getsockname()[1]
        plan = Plan(Consensus.QBFT, 1, 2, port, False, False)
        with pytest.raises(CommandError, match=f"Port {port} is taken"):
            lay_out(plan, ())
    assert lay_out(plan, ()).proxy == port
