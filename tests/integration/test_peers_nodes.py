"""Connections between real nodes: by method, by file and by discovery; their reported state; refused connections."""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion

APIS = "--rpc-http-api=ADMIN,NET,ETH,DEBUG"
LOOPBACK = ("--p2p-interface=127.0.0.1", "--p2p-port=0")
QUIET = (*LOOPBACK, "--discovery-enabled=false")


def node(folder: Path, *options: str) -> NodeProcess:
    return NodeProcess(folder, "--network=dev", APIS, *(options or QUIET))


def peer_count(process: NodeProcess) -> int:
    return int(process.rpc("net_peerCount"), 16)


def readiness(process: NodeProcess, query: str = "") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", process.ports["json-rpc"], timeout=60)
    connection.request("GET", f"/readiness{query}")
    status = connection.getresponse().status
    connection.close()
    return status


def test_two_nodes_connect_and_report_it_correctly(tmp_path: Path) -> None:
    with node(tmp_path / "a") as a, node(tmp_path / "b") as b:
        enode = b.rpc("net_enode")
        assert enode.endswith(f"@127.0.0.1:{b.ports['p2p']}?discport=0")
        assert "discovery" not in b.ports
        assert (readiness(a), readiness(a, "?minPeers=0")) == (503, 200)
        assert a.rpc("admin_addPeer", enode) is True
        assert a.rpc("admin_addPeer", enode) is False
        wait_for(lambda: peer_count(a) == peer_count(b) == 1)
        assert (readiness(a), readiness(a, "?minPeers=2"), readiness(a, "?minPeers=x")) == (200, 503, 503)
        [seen_by_a], [seen_by_b] = a.rpc("admin_peers"), b.rpc("admin_peers")
        assert list(seen_by_a)[:6] == ["version", "name", "caps", "network", "port", "id"]
        assert seen_by_a["id"] == "0x" + b.rpc("admin_nodeInfo")["id"]
        assert seen_by_a["network"]["remoteAddress"] == seen_by_b["network"]["localAddress"]
        assert (seen_by_a["network"]["inbound"], seen_by_b["network"]["inbound"]) == (False, True)
        assert seen_by_a["port"] == hex(b.ports["p2p"])
        assert "eth/68" in seen_by_a["caps"]
        wait_for(lambda: "protocols" in a.rpc("admin_peers")[0])
        eth = a.rpc("admin_peers")[0]["protocols"]["eth"]
        assert eth == {
            "difficulty": "0x10000",
            "head": b.rpc("admin_nodeInfo")["protocols"]["eth"]["head"],
            "version": 68,
        }
        assert a.rpc("net_listening") is True
        assert a.rpc("net_services")["p2p"] == {"host": "127.0.0.1", "port": str(a.ports["p2p"])}
        assert a.rpc("admin_nodeInfo")["ports"] == {"listener": a.ports["p2p"]}
        assert a.rpc("debug_metrics")["peers"]["connected_total"] == {"outbound": 1}
        assert a.rpc("admin_removePeer", enode) is True
        wait_for(lambda: peer_count(a) == peer_count(b) == 0)
        assert b.rpc("debug_metrics")["peers"]["disconnected_total"] == {"remote": {"requested": 1}}


def test_static_peers_are_back_within_seconds_of_a_restart(tmp_path: Path) -> None:
    (port,) = free_ports(1)  # reserve the port, so that no other process uses it while the node is down
    at_port = ("--p2p-interface=127.0.0.1", f"--p2p-port={port}", "--discovery-enabled=false")
    with node(tmp_path / "b", *at_port) as b:
        enode = b.rpc("net_enode")
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "static-nodes.json").write_text(json.dumps([enode]))
        with node(tmp_path / "a") as a:
            assert "Connecting to 1 static nodes." in a.output()
            wait_for(lambda: peer_count(a) == 1)
            b.kill()
            wait_for(lambda: peer_count(a) == 0)
            with node(tmp_path / "b", *at_port) as again:
                wait_for(lambda: peer_count(a) == peer_count(again) == 1)
                assert again.stop() == 0
                wait_for(lambda: peer_count(a) == 0)
                gone = a.rpc("debug_metrics")["peers"]["disconnected_total"]["remote"]
                assert gone["client_quitting"] == 1


def test_nodes_find_each_other_through_a_bootnode(tmp_path: Path) -> None:
    with node(tmp_path / "boot", *LOOPBACK, "--bootnodes") as boot:
        enode = boot.rpc("net_enode")
        assert boot.ports["discovery"] == boot.ports["p2p"]
        assert boot.rpc("admin_nodeInfo")["ports"] == {"discovery": boot.ports["p2p"], "listener": boot.ports["p2p"]}
        assert boot.rpc("admin_nodeInfo")["enr"] == (tmp_path / "boot" / "node-record").read_text().strip()
        options = (*LOOPBACK, f"--bootnodes={enode}")
        with node(tmp_path / "a", *options) as a, node(tmp_path / "b", *options) as b:
            wait_for(lambda: all(peer_count(one) == 2 for one in (boot, a, b)))
            assert boot.rpc("debug_metrics")["network"]["discovery_messages_inbound_total"]["ping"] >= 2


def test_a_peer_of_another_network_is_left_at_once_and_not_stormed(tmp_path: Path) -> None:
    with node(tmp_path / "b", *QUIET, "--network-id=77") as b, node(tmp_path / "a") as a:
        a.rpc("admin_addPeer", b.rpc("net_enode"))
        wait_for(lambda: bool(_endings(a)))
        time.sleep(3)
        wait_for(lambda: peer_count(a) == 0)  # a redialled peer counts as connected for a moment, so wait
        endings: dict[str, Any] = _endings(a)
        assert sum(count for who in endings.values() for count in who.values()) <= 4
        assert any("subprotocol" in who for who in endings.values())


def _endings(process: NodeProcess) -> dict[str, Any]:
    found: dict[str, Any] = process.rpc("debug_metrics")["peers"].get("disconnected_total", {})
    return found


def test_the_development_node_opens_no_port_for_peers(tmp_path: Path) -> None:
    free = ("--rpc-ws-port=0", "--graphql-http-port=0")
    with NodeProcess(tmp_path / "dev", *free, command=("dev",)) as dev:
        assert "p2p" not in dev.ports
        assert "Enode URL" not in dev.output()
        assert readiness(dev) == 200
    with NodeProcess(tmp_path / "asked", *free, *QUIET, command=("dev",)) as asked:
        assert asked.ports["p2p"] > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--p2p-interface=192.0.2.1",), "The provided --p2p-interface is not available: 192.0.2.1"),
        (("--p2p-host=node.example.org",), "'node.example.org' is not an IP address"),
        (("--p2p-host=no.such.invalid", "--dns-enabled"), "no.such.invalid of --p2p-host does not resolve"),
        (("--bootnodes=enode://aa@127.0.0.1:1",), "Invalid enode URL syntax"),
        (("--net-restrict=10.0.0.0/99",), "is not a subnet"),
        (("--static-nodes-file=nowhere.json",), "Static nodes file nowhere.json does not exist"),
        (("--identity=a/b",), "cannot be shown to peers"),
    ],
)
def test_what_cannot_be_is_one_clear_line(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    ophion(f"--data-path={tmp_path / 'data'}", "--network=dev", "--p2p-port=0", *options).failed(message)


def test_a_broken_file_of_static_nodes_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "static-nodes.json").write_text('["enode://x"]')
    ophion(f"--data-path={tmp_path / 'data'}", "--network=dev", *QUIET).failed("static-nodes.json, entry 1: Invalid")


def test_a_port_in_use_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        ophion(
            f"--data-path={tmp_path / 'data'}", "--network=dev", "--p2p-interface=127.0.0.1", f"--p2p-port={port}"
        ).failed(f"P2P service cannot listen on 127.0.0.1:{port}")


def test_without_a_router_upnp_says_so_and_the_node_goes_on(tmp_path: Path) -> None:
    with node(tmp_path / "a", *QUIET, "--nat-method=UPNP", "--identity=lab") as a:
        assert a.rpc("net_listening") is True
        assert "/lab/v" in a.rpc("admin_nodeInfo")["name"]
        wait_for(lambda: "no UPnP gateway answered" in a.output())


def test_many_connections_leave_nothing_behind(tmp_path: Path) -> None:
    """Open and close many connections, half of which send data. With `OPHION_LONG`, the test opens a thousand."""
    count = 1000 if os.environ.get("OPHION_LONG") else 200
    with node(tmp_path / "a") as a:
        for _ in range(50):
            _knock(a.ports["p2p"])
        files, memory = _files(a.pid), _memory(a.pid)
        for number in range(count):
            _knock(a.ports["p2p"], b"x" * 400 if number % 2 else b"")
        wait_for(lambda: _files(a.pid) <= files + 2)
        assert _memory(a.pid) - memory < 8 * 1024 * 1024
        assert peer_count(a) == 0


def _knock(port: int, data: bytes = b"") -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
        if data:
            one.sendall(data)


def _files(pid: int) -> int:
    folder = Path(f"/proc/{pid}/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def _memory(pid: int) -> int:
    statm = Path(f"/proc/{pid}/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0
