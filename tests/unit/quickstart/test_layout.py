"""Ports: those of the table, or free ones."""

from __future__ import annotations

import socket

import pytest
from msgspec.structs import astuple, replace

from ophion.errors import CommandError
from ophion.quickstart.layout import Claims, Layout, NodePorts, lay_out
from ophion.quickstart.plan import Consensus, Plan

PLAN = Plan(Consensus.QBFT, 2, 2, None, False, False)


def everything(port: int) -> bool:
    """A machine on which nothing listens."""
    return True


def test_the_table_where_everything_is_free() -> None:
    found = lay_out(PLAN, ("prometheus",), everything)
    assert found.nodes == {
        "rpcnode": NodePorts(30303, 8545, 8546, 8547, 9545),
        "validator1": NodePorts(30311, 21001, 22001, 23001, 9551),
        "validator2": NodePorts(30312, 21002, 22002, 23002, 9552),
    }
    assert (found.proxy, found.tools, found.address) == (8080, {"prometheus": 9090}, "127.0.0.1:8080")


def test_ports_of_members() -> None:
    nodes = lay_out(replace(PLAN, has_privacy=True), (), everything).nodes
    assert nodes["member1"] == NodePorts(30321, 20000, 20001, 23101, 9561)
    assert nodes["member3"] == NodePorts(30323, 20004, 20005, 23103, 9563)


def test_a_taken_port_is_replaced_by_a_free_one() -> None:
    found = lay_out(PLAN, (), lambda port: port not in (8545, 8080))
    assert found.nodes["rpcnode"].http != 8545
    assert found.nodes["rpcnode"].websocket == 8546
    assert found.proxy != 8080
    ports = _all(found)
    assert len(set(ports)) == len(ports)


def _all(layout: Layout) -> list[int]:
    nodes = (astuple(node) for node in layout.nodes.values())
    return [layout.proxy, *layout.tools.values(), *(port for node in nodes for port in node)]


def test_two_that_start_at_the_same_moment_get_different_ports() -> None:
    """Nothing of the first listens yet when the second looks."""
    with Claims() as first, Claims() as second:
        one, other = lay_out(PLAN, ("grafana",), first.take), lay_out(PLAN, ("grafana",), second.take)
        assert set(_all(one)).isdisjoint(_all(other))


def test_a_port_is_claimed_until_its_network_ends() -> None:
    with Claims() as first:
        port = lay_out(replace(PLAN, port=0), (), first.take).proxy
        with Claims() as second, pytest.raises(CommandError, match=f"Port {port} is taken"):
            lay_out(replace(PLAN, port=port), (), second.take)
    with Claims() as third:
        assert lay_out(replace(PLAN, port=port), (), third.take).proxy == port


def test_a_port_that_was_asked_for_is_not_replaced() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        port = one.getsockname()[1]
        plan = Plan(Consensus.QBFT, 1, 2, port, False, False)
        with Claims() as claims, pytest.raises(CommandError, match=f"Port {port} is taken"):
            lay_out(plan, (), claims.take)
    with Claims() as claims:
        assert lay_out(plan, (), claims.take).proxy == port
