"""Real nodes that know each other by host names find each other after an address changes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion

NODE_ID = "07" * 64


def node(folder: Path, *options: str) -> NodeProcess:
    return NodeProcess(folder, "--network=dev", "--rpc-http-api=ADMIN,NET,PERM", *options)


def peer_count(process: NodeProcess) -> int:
    return int(process.rpc("net_peerCount"), 16)


def test_a_peer_is_followed_to_another_address(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    hosts, permitted = tmp_path / "hosts", tmp_path / "permitted.toml"
    hosts.write_text("")
    at = ("--discovery-enabled=false", f"--p2p-port={port}")
    with node(tmp_path / "b", *at, "--p2p-interface=127.0.0.1") as b:
        named = b.rpc("net_enode").replace("127.0.0.1", "validator-1").partition("?")[0]
        permitted.write_text(f'nodes-allowlist = ["{named}"]\n')
        with node(
            tmp_path / "a",
            "--discovery-enabled=false",
            "--p2p-port=0",
            "--p2p-interface=127.0.0.1",
            "--Xdns-enabled",
            "--Xdns-update-enabled=true",
            f"--dns-hosts-file={hosts}",
            "--permissions-nodes-config-file-enabled",
            f"--permissions-nodes-config-file={permitted}",
        ) as a:
            assert a.rpc("admin_addPeer", named) is True
            wait_for(lambda: "host name does not resolve name=validator-1" in a.output())
            hosts.write_text("127.0.0.1 validator-1\n")
            wait_for(lambda: peer_count(a) == 1)
            assert a.rpc("perm_getNodesAllowlist") == [named]
            b.stop()
            wait_for(lambda: peer_count(a) == 0)
            hosts.write_text("127.0.0.2 validator-1\n")
            with node(tmp_path / "b", *at, "--p2p-interface=127.0.0.2"):
                began = time.monotonic()
                wait_for(lambda: peer_count(a) == 1)
                took = time.monotonic() - began
            assert a.rpc("admin_removePeer", named) is True
            assert a.output().count("host name does not resolve") == 1
    print(f"reached at the other address after {took:.1f} s")


def test_a_bootnode_is_found_by_its_name(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 boot.example\n")
    loopback = ("--p2p-interface=127.0.0.1", "--p2p-port=0")
    with node(tmp_path / "boot", *loopback, "--bootnodes") as boot:
        named = boot.rpc("net_enode").replace("127.0.0.1", "boot.example")
        options = (*loopback, "--dns-enabled", f"--dns-hosts-file={hosts}", f"--bootnodes={named}")
        with node(tmp_path / "a", *options) as a:
            wait_for(lambda: peer_count(a) == peer_count(boot) == 1)


@pytest.mark.parametrize("where", ["bootnodes", "static nodes"])
def test_host_names_need_the_option(tmp_path: Path, where: str) -> None:
    url = f"enode://{NODE_ID}@validator-1:30303"
    options = [f"--data-path={tmp_path}", "--network=dev", "--p2p-interface=127.0.0.1"]
    if where == "bootnodes":
        options.append(f"--bootnodes={url}")
    else:
        (tmp_path / "static-nodes.json").write_text(f'["{url}"]')
    ophion(*options).failed("Invalid ip address 'validator-1'; host names are not accepted without --dns-enabled.")


def test_the_advertised_address_may_be_a_name(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.9 validator-1\n")
    named = ("--p2p-host=validator-1", "--dns-enabled", f"--dns-hosts-file={hosts}")
    with node(tmp_path / "a", "--discovery-enabled=false", "--p2p-port=0", "--p2p-interface=127.0.0.1", *named) as a:
        assert "@127.0.0.9:" in a.rpc("net_enode")
