"""Tests default ports and free ports."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from msgspec.structs import astuple, replace

from ophion.errors import CommandError
from ophion.quickstart.plan import Consensus, NetworkPlan
from ophion.quickstart.ports import NetworkPorts, NodePorts, PortClaims, lay_out, spare_port

PLAN = NetworkPlan(Consensus.QBFT, 2, 2, None, False, False)
TABLE = {3000, 8080, 8545, 8546, 8547, 9090, 9545, 9551, 9552, 21001, 21002, 22001, 22002, 23001, 23002}
TABLE |= {30303, 30311, 30312}


def everything(port: int) -> bool:
    """Return True, because no process listens on the simulated machine."""
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


def test_free_ports_are_not_ephemeral_ports() -> None:
    """Any connection of this machine could use an ephemeral port before the node listens."""
    found = _all(lay_out(replace(PLAN, port=0), ("grafana",), lambda port: port not in TABLE))
    assert len(set(found)) == len(found)
    assert all(10_000 <= port < 20_000 for port in found)
    with pytest.raises(CommandError, match="No port is free between 10000 and 19999"):
        lay_out(PLAN, (), lambda port: False)


def _all(layout: NetworkPorts) -> list[int]:
    nodes = (astuple(node) for node in layout.nodes.values())
    return [layout.proxy, *layout.tools.values(), *(port for node in nodes for port in node)]


def test_two_that_start_at_the_same_moment_get_different_ports() -> None:
    """The second start gets other ports, although no process uses the ports of the first start yet."""
    with PortClaims() as first, PortClaims() as second:
        one, other = lay_out(PLAN, ("grafana",), first.take), lay_out(PLAN, ("grafana",), second.take)
        assert set(_all(one)).isdisjoint(_all(other))


def test_a_port_is_claimed_until_its_network_ends() -> None:
    with PortClaims() as first:
        port = lay_out(replace(PLAN, port=0), (), first.take).proxy
        with PortClaims() as second, pytest.raises(CommandError, match=f"Port {port} is in use"):
            lay_out(replace(PLAN, port=port), (), second.take)
    with PortClaims() as third:
        assert lay_out(replace(PLAN, port=port), (), third.take).proxy == port


def test_a_port_that_was_asked_for_is_not_replaced() -> None:
    with PortClaims() as claims:
        port = spare_port(claims.take)
    plan = NetworkPlan(Consensus.QBFT, 1, 2, port, False, False)
    taken = pytest.raises(CommandError, match=f"Port {port} is in use")
    with socket.create_server(("127.0.0.1", port)), PortClaims() as claims, taken:
        lay_out(plan, (), claims.take)
    with PortClaims() as claims:
        assert lay_out(plan, (), claims.take).proxy == port


def test_a_network_that_is_resumed_has_the_ports_it_had(tmp_path: Path) -> None:
    file = tmp_path / "ports.json"
    assert NetworkPorts.read(file) is None
    first = lay_out(replace(PLAN, port=0), ("grafana",), lambda port: port not in (8545, 3000))
    file.write_text(first.text())
    last = NetworkPorts.read(file)
    assert last == first
    assert lay_out(replace(PLAN, port=0), ("grafana",), everything, last) == first
    # a resumed network replaces only ports that are in use, and a newly installed tool gets its default port
    again = lay_out(PLAN, ("grafana", "prometheus"), lambda port: port != first.proxy, last)
    assert (again.nodes, again.tools) == (first.nodes, {**first.tools, "prometheus": 9090})
    assert again.proxy not in (first.proxy, 8080)
    # an explicitly requested port takes precedence over the port of the last run
    assert lay_out(replace(PLAN, port=8081), (), everything, last).proxy == 8081


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"proxy": 1, "nodes": [], "tools": {}}', '{"proxy": 1, "nodes": {"a": {"p2p": 1}}, "tools": {}}']
    + [f'{{"proxy": {port}, "nodes": {{}}, "tools": {{}}}}' for port in ("0", "65536", "true", '"1"', "null")]
    + ["[" * 100_000],
)
def test_a_file_of_ports_that_is_none_of_ours_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ports.json"
    file.write_text(text)
    with pytest.raises(CommandError, match="is not a valid list of ports"):
        NetworkPorts.read(file)
