"""Tests web3_*, net_* and rpc_*."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.endpoints.services import method_table
from ophion.rpc.schema.registry import HTTP
from tests.unit.rpc.interface import VERSION, Interface

P2P_OFF = (-32000, "P2P has been disabled. This functionality is not available")


def test_who_the_node_is(dev: Interface) -> None:
    assert dev.ask("web3_clientVersion") == VERSION
    assert dev.ask("net_version") == "2018"
    assert dev.ask("net_listening") is False
    assert dev.ask("net_peerCount") == "0x0"
    assert dev.error("net_enode") == (-32000, "P2P network is not running")
    assert dev.ask("net_services") == {"jsonrpc": {"host": "127.0.0.1", "port": "8545"}}


def test_once_it_listens_others_can_find_it(dev: Interface) -> None:
    with dev.with_peers() as service:
        assert service.local_enode is not None
        port = service.local_enode.tcp_port
        assert dev.ask("net_listening") is True
        assert dev.ask("net_peerCount") == "0x0"
        assert dev.ask("net_enode").endswith(f"@127.0.0.1:{port}?discport=0")


def test_without_a_network_there_is_nothing_to_say_about_it(dev: Interface) -> None:
    context = replace(dev.context, peers=None)
    dev.dispatcher = Dispatcher(method_table(context, ("admin", "net"), HTTP), dev.loop)
    for name in ("net_peerCount", "net_enode", "admin_peers", "admin_nodeInfo"):
        assert dev.error(name) == P2P_OFF
    assert dev.error("admin_addPeer", "enode://x") == P2P_OFF
    assert dev.ask("net_listening") is False


@pytest.mark.parametrize("params", [[], ["68"], ["0x1"], ["0xzz"], [5], ["0x", "0x"]])
def test_hashing_needs_whole_prefixed_bytes(dev: Interface, params: list[object]) -> None:
    assert dev.error("web3_sha3", *params) == (-32602, "Invalid params")


def test_nothing_hashes_to_the_empty_hash(dev: Interface) -> None:
    empty = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert dev.ask("web3_sha3", "") == dev.ask("web3_sha3", "0x") == empty


def test_modules_are_those_of_the_transport(dev: Interface) -> None:
    dev.dispatcher = dev.dispatcher_for(HTTP, ("web3", "eth", "net"))
    assert dev.ask("rpc_modules") == {"web3": "1.0", "eth": "1.0", "net": "1.0"}
    dev.dispatcher = dev.dispatcher_for(HTTP, ())
    assert dev.error("rpc_modules")[0] == -32604


def test_the_document_describes_what_is_on(dev: Interface) -> None:
    dev.dispatcher = dev.dispatcher_for(HTTP, ("web3",))
    document = dev.ask("rpc.discover")
    assert {method["name"] for method in document["methods"]} == {
        "rpc.discover", "rpc_modules", "web3_clientVersion", "web3_sha3",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["hardhat_metadata", "anvil_mine", "evm_snapshot", "parity_x", "ots_x", "erigon_x"])
def test_probes_of_other_clients_are_unknown(dev: Interface, name: str) -> None:
    assert dev.error(name) == (-32601, "Method not found")
