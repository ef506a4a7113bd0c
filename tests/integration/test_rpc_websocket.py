"""Tests subscriptions over WebSocket with a real process and a small client on wsproto."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Ping, Request, TextMessage

from ophion.native.crypto import keccak256
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.contracts import LOGGING, deploying

OPTIONS = (*MINING, "--rpc-ws-enabled", "--rpc-ws-port=0", "--rpc-ws-api=ETH,WEB3,ADMIN")


class WebSocket:
    """A client that separates answers and notifications."""

    def __init__(self, node: NodeProcess) -> None:
        self.socket = socket.create_connection(("127.0.0.1", node.ports["ws-rpc"]), timeout=60)
        self.protocol = WSConnection(ConnectionType.CLIENT)
        self.answers: dict[Any, Any] = {}
        self.notifications: list[tuple[str, Any]] = []
        self.is_accepted = False
        self.is_closed = False
        self._text = ""
        self.socket.sendall(self.protocol.send(Request(host="localhost", target="/")))
        while not self.is_accepted:
            self._receive()

    def ask(self, name: str, *params: Any, id: Any = 1) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": id, "method": name, "params": params})
        self.socket.sendall(self.protocol.send(TextMessage(data=body)))
        while id not in self.answers:
            self._receive()
        return self.answers.pop(id)

    def wait(self, count: int) -> list[tuple[str, Any]]:
        """Wait for `count` notifications and return them, oldest first."""
        deadline = time.monotonic() + 60
        while len(self.notifications) < count:
            assert time.monotonic() < deadline, self.notifications
            self._receive()
        received, self.notifications = self.notifications[:count], self.notifications[count:]
        return received

    def _receive(self) -> None:
        self.protocol.receive_data(self.socket.recv(65536) or None)
        for event in self.protocol.events():
            if isinstance(event, AcceptConnection):
                self.is_accepted = True
            elif isinstance(event, Ping):
                self.socket.sendall(self.protocol.send(event.response()))
            elif isinstance(event, CloseConnection):
                self.is_closed = True
            elif isinstance(event, TextMessage):
                self._text += event.data
                if event.message_finished:
                    self._keep(json.loads(self._text))
                    self._text = ""

    def _keep(self, message: Any) -> None:
        if "method" in message:
            self.notifications.append((message["params"]["subscription"], message["params"]["result"]))
        else:
            self.answers[message["id"]] = message


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path / "data", *OPTIONS) as running:
        yield running


def test_requests_and_groups(node: NodeProcess) -> None:
    client = WebSocket(node)
    assert client.ask("eth_chainId")["result"] == "0x7e2"
    assert client.ask("admin_peers")["result"] == []
    assert client.ask("net_version")["error"]["code"] == -32604
    assert client.ask("rpc_modules")["result"] == {"eth": "1.0", "web3": "1.0", "admin": "1.0"}


def test_subscriptions_report_a_transaction_pending_mined_and_with_logs(node: NodeProcess) -> None:
    created = node.receipt(node.send(legacy_transaction(DEV_KEYS[1], 0, to=None, gas=300_000, data=deploying(LOGGING))))
    contract = created["contractAddress"]
    client = WebSocket(node)
    heads = client.ask("eth_subscribe", "newHeads")["result"]
    logs = client.ask("eth_subscribe", "logs", {"address": contract})["result"]
    pending = client.ask("eth_subscribe", "newPendingTransactions")["result"]
    syncing = client.ask("eth_subscribe", "syncing")["result"]
    assert [heads, logs, pending, syncing] == ["0x1", "0x2", "0x3", "0x4"]
    sent = node.send(legacy_transaction(DEV_KEYS[1], 1, to=bytes.fromhex(contract[2:]), gas=100_000))
    received = dict(client.wait(4))
    assert received[pending] == sent
    assert received[heads]["transactions"] == [sent]
    assert (received[logs]["transactionHash"], received[logs]["removed"]) == (sent, False)
    assert received[syncing] is False
    assert node.receipt(sent)["blockHash"] == received[heads]["hash"]
    assert client.ask("eth_unsubscribe", heads)["result"] is True
    assert client.ask("eth_unsubscribe", heads)["error"]["code"] == -32000


def test_a_message_of_the_size_of_six_blobs_is_one_frame(node: NodeProcess) -> None:
    client = WebSocket(node)
    blobs = "0x" + "ab" * (6 * 131_072 + 100_000)
    assert client.ask("web3_sha3", blobs)["result"] == "0x" + keccak256(bytes.fromhex(blobs[2:])).hex()
    assert not client.is_closed


def test_subscriptions_die_with_their_connection(node: NodeProcess) -> None:
    gone = WebSocket(node)
    gone.ask("eth_subscribe", "newHeads")
    gone.socket.close()
    other = WebSocket(node)
    mine = other.ask("eth_subscribe", "newHeads")["result"]
    assert other.ask("eth_unsubscribe", "0x1")["error"]["code"] == -32000
    node.receipt(node.send(legacy_transaction(DEV_KEYS[1], 0)))
    assert [subscription for subscription, _ in other.wait(1)] == [mine]


def test_a_stopping_node_says_goodbye(node: NodeProcess) -> None:
    client = WebSocket(node)
    assert node.stop() == 0
    while not client.is_closed:
        client._receive()
