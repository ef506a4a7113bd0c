"""admin_*."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from ophion.runtime.logs import LogLevel, current_level, set_level
from tests.unit.rpc.interface import Interface

NODE_ID = "ab" * 64


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    before = current_level()
    yield
    set_level(before)


def test_the_node_describes_itself_and_its_chain(dev: Interface) -> None:
    info = dev.ask("admin_nodeInfo")
    assert info["id"] == info["enode"][8:136]
    assert info["name"] == dev.ask("web3_clientVersion")
    eth = info["protocols"]["eth"]
    assert eth["network"] == 2018
    assert eth["genesis"] == eth["head"] == dev.ask("eth_getBlockByNumber", "0x0")["hash"]
    assert eth["difficulty"] == 0x10000
    assert eth["config"]["chainId"] == 2018
    assert "ethash" in eth["config"]


def test_there_are_no_peers_and_none_can_be_added_yet(dev: Interface) -> None:
    assert dev.ask("admin_peers") == []
    good = f"enode://{NODE_ID}@127.0.0.1:30303"
    assert dev.error("admin_addPeer", good) == (-32000, "P2P network is not running")
    assert dev.error("admin_removePeer", good) == (-32000, "P2P network is not running")


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
def test_a_malformed_peer_is_told_what_is_wrong(dev: Interface, url: str, code: int) -> None:
    assert dev.error("admin_addPeer", url)[0] == code
    assert dev.error("admin_removePeer", url)[0] == code


def test_exactly_one_peer_at_a_time(dev: Interface) -> None:
    assert dev.error("admin_addPeer")[0] == -32602
    assert dev.error("admin_addPeer", 5)[0] == -32602
    assert dev.error("admin_addPeer", "a", "b")[0] == -32602


def test_the_log_level_changes_while_the_node_runs(dev: Interface) -> None:
    assert dev.ask("admin_changeLogLevel", "debug") == "Success"
    assert current_level() is LogLevel.DEBUG
    assert dev.ask("admin_changeLogLevel", "ERROR", ["ophion.rpc"]) == "Success"
    assert logging.getLogger("ophion.rpc").getEffectiveLevel() == logging.ERROR
    set_level(LogLevel.INFO, ["ophion.rpc"])
    for params in ([], ["LOUD"], [5], ["INFO", "ophion"], ["INFO", [5]]):
        assert dev.error("admin_changeLogLevel", *params) == (-32602, "Invalid params")
