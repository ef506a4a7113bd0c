"""Tests admin_*."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import Capability, negotiate
from ophion.peers.rlpx.hello import Hello
from ophion.runtime.logs import LogLevel, set_level
from ophion.testing.signing import DEV_KEYS
from tests.unit.rpc.interface import Interface

NODE_ID = "ab" * 64


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    yield
    set_level(LogLevel.INFO)


def test_the_node_describes_itself_and_its_chain(dev: Interface) -> None:
    assert dev.error("admin_nodeInfo") == (-32000, "P2P network is not running")
    with dev.with_peers() as service:
        assert service.local_enode is not None
        port = service.local_enode.tcp_port
        info = dev.ask("admin_nodeInfo")
    assert info["listenAddr"] == f"127.0.0.1:{port}"
    assert info["ip"] == "127.0.0.1"
    assert info["ports"] == {"listener": port}, "discovery is off"
    assert info["id"] == info["enode"][8:136]
    assert info["name"] == dev.ask("web3_clientVersion")
    eth = info["protocols"]["eth"]
    assert eth["network"] == 2018
    assert eth["genesis"] == eth["head"] == dev.ask("eth_getBlockByNumber", "0x0")["hash"]
    assert eth["difficulty"] == 0x10000
    assert eth["config"]["chainId"] == 2018
    named = ["homestead", "daoFork", "eip150", "eip155", "eip158", "byzantium", "constantinople", "constantinopleFix"]
    assert {f"{name}Block": eth["config"][f"{name}Block"] for name in named} == {f"{name}Block": 0 for name in named}
    assert eth["config"]["daoForkSupport"] is True
    assert "ethash" in eth["config"]


def test_peers_are_kept_and_dropped(dev: Interface) -> None:
    url = f"enode://{NODE_ID}@127.0.0.1:30303"
    assert dev.ask("admin_peers") == []
    assert dev.ask("admin_addPeer", url) is True
    assert dev.ask("admin_addPeer", url) is False
    assert dev.ask("admin_addPeer", url + "?discport=0") is True, "the whole enode is the identity of an entry"
    assert dev.ask("admin_removePeer", url) is True
    assert dev.ask("admin_removePeer", url) is False


def test_a_peer_is_shown_in_the_format_of_pantheon(dev: Interface) -> None:
    eth = Capability("eth", 68, 17)
    assert dev.context.peers is not None
    hello = Hello.of("other/v1/linux", [Capability("snap", 1, 8), eth], 30303, DEV_KEYS[1].public_key)
    shared = negotiate([eth], hello.capabilities)
    local, remote = ("::1", 50115), ("10.0.0.7", 30304)
    peer = Peer(None, hello, shared, local=local, remote=remote, is_inbound=True, since=0.0)  # type: ignore[arg-type]
    dev.context.peers.peers.add(peer)
    [shown] = dev.ask("admin_peers")
    assert list(shown) == ["version", "name", "caps", "network", "port", "id", "enode"]
    assert shown["version"] == "0x5"
    assert shown["name"] == "other/v1/linux"
    assert shown["caps"] == ["snap/1", "eth/68"]
    assert shown["network"]["localAddress"] == "[::1]:50115"
    assert shown["network"]["remoteAddress"] == "10.0.0.7:30304"
    assert shown["port"] == "0x765f"
    assert shown["id"] == "0x" + DEV_KEYS[1].public_key.hex()
    assert dev.ask("net_peerCount") == "0x1"


@pytest.mark.parametrize(
    ("url", "code"),
    [
        (f"enode://0x{NODE_ID}@127.0.0.1:30303", -32000),
        ("enode://abcd@127.0.0.1:30303", -32000),
        (f"enode://{NODE_ID}@host.name:30303", -32700),
        (f"enode://{NODE_ID}@127.0.0.1:0", -32700),
        (f"enode://{NODE_ID}@127.0.0.1:99999", -32700),
        (f"http://{NODE_ID}@127.0.0.1:30303", -32700),
        ("", -32700),
    ],
)
def test_a_malformed_enode_gives_a_clear_error(dev: Interface, url: str, code: int) -> None:
    assert dev.error("admin_addPeer", url)[0] == code
    assert dev.error("admin_removePeer", url)[0] == code


def test_exactly_one_peer_at_a_time(dev: Interface) -> None:
    assert dev.error("admin_addPeer")[0] == -32602
    assert dev.error("admin_addPeer", 5)[0] == -32602
    assert dev.error("admin_addPeer", "a", "b")[0] == -32602


def test_the_log_level_changes_while_the_node_runs(dev: Interface) -> None:
    assert dev.ask("admin_changeLogLevel", "debug") == "Success"
    assert logging.getLogger("ophion").level == logging.DEBUG
    assert dev.ask("admin_changeLogLevel", "ERROR", ["ophion.rpc"]) == "Success"
    assert logging.getLogger("ophion.rpc").getEffectiveLevel() == logging.ERROR
    set_level(LogLevel.INFO, ["ophion.rpc"])
    for params in ([], ["LOUD"], [5], ["INFO", "ophion"], ["INFO", [5]]):
        assert dev.error("admin_changeLogLevel", *params) == (-32602, "Invalid params")
