"""Tests the services that the options enable."""

from __future__ import annotations

from pathlib import Path

from ophion.chainspec.dev_network import dev_genesis
from ophion.node.config import NodeConfig
from ophion.node.interface_options import HttpConfig, WebSocketConfig
from ophion.node.security_options import HttpTlsConfig, WebSocketTlsConfig
from ophion.node.services import PublicInterface, build_interface
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.thread_pools import InlineLanes
from ophion.testing.node_core import open_core
from ophion.testing.signing import DEV_KEYS
from tests.unit.rpc.tls.test_certificates import identity, pem_file


def interface(tmp_path: Path, config: NodeConfig) -> PublicInterface:
    with open_core(tmp_path) as core:
        return build_interface(
            config, dev_genesis(), core.core, DEV_KEYS[0], InlineLanes(), core.clock, SystemEntropy()
        )


def test_nothing_listens_unless_asked_to(tmp_path: Path) -> None:
    built = interface(tmp_path, NodeConfig())
    assert built.ports() == {}
    assert [service.name for service in built.services] == ["subscriptions", "memory", "warming"]
    assert built.enode is None


def test_every_service_that_is_on_has_a_port_and_an_address(tmp_path: Path) -> None:
    config = NodeConfig(http=HttpConfig(enabled=True), websocket=WebSocketConfig(enabled=True, port=9))
    built = interface(tmp_path, config)
    assert built.ports() == {"json-rpc": 8545, "ws-rpc": 9}
    assert built.urls() == {"HTTP": "http://127.0.0.1:8545", "WebSocket": "ws://127.0.0.1:9"}
    assert len(built.services) == 5


def test_addresses_say_what_is_encrypted(tmp_path: Path) -> None:
    store = pem_file(tmp_path / "node.pem", *identity("node"))
    config = NodeConfig(
        http=HttpConfig(enabled=True),
        http_tls=HttpTlsConfig(enabled=True, keystore_file=store),
        websocket=WebSocketConfig(enabled=True),
        websocket_tls=WebSocketTlsConfig(enabled=True, keystore_file=store),
    )
    built = interface(tmp_path / "node", config)
    assert built.urls() == {"HTTP": "https://127.0.0.1:8545", "WebSocket": "wss://127.0.0.1:8546"}
