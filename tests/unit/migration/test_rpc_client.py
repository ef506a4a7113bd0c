"""The JSON-RPC client matches answers to calls and reports every failure as one error."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, ClassVar

import pytest

from ophion.errors import CommandError
from ophion.migration.rpc_client import Failure, RpcClient


class Server(BaseHTTPRequestHandler):
    """Answers each request with the content that the test has set."""

    content: ClassVar[bytes] = b""
    status: ClassVar[int] = 200
    seen: ClassVar[list[Any]] = []

    def do_POST(self) -> None:
        self.seen.append((json.loads(self.rfile.read(int(self.headers["Content-Length"]))), dict(self.headers)))
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        self.wfile.write(self.content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def client() -> Iterator[RpcClient]:
    with HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        Server.seen.clear()
        Server.status = 200
        yield RpcClient(f"http://127.0.0.1:{server.server_port}", "secret")
        server.shutdown()
        thread.join()


def answer(content: Any) -> None:
    Server.content = json.dumps(content).encode()


def test_answers_are_sorted_by_id(client: RpcClient) -> None:
    answer([{"id": 1, "error": {"code": -32601, "message": "no"}}, {"id": 0, "result": "0x1"}])
    assert client.batch([("eth_a", []), ("eth_b", [1])]) == ["0x1", Failure(-32601, "no")]
    sent, headers = Server.seen[0]
    assert [(call["method"], call["params"]) for call in sent] == [("eth_a", []), ("eth_b", [1])]
    assert headers["Authorization"] == "Bearer secret"
    answer({"id": 0, "result": None})
    assert client.call("eth_a") is None
    answer({"id": 0, "error": {"code": -32000, "message": "bad\x1b"}})
    with pytest.raises(CommandError, match=r"refuses eth_a: 'bad\\x1b' \(-32000\)"):
        client.call("eth_a")


@pytest.mark.parametrize("content", [[], [{"id": 0}], [{"id": 7}, {"id": 0}], "text", [1, 2], 3])
def test_other_answers_are_no_json_rpc(client: RpcClient, content: Any) -> None:
    answer(content)
    with pytest.raises(CommandError, match="does not answer in JSON-RPC"):
        client.batch([("eth_a", []), ("eth_b", [])])


def test_failures_of_http_are_named(client: RpcClient) -> None:
    Server.content = b"<html>"
    with pytest.raises(CommandError, match="does not answer in JSON-RPC"):
        client.call("eth_a")
    Server.status = 302
    with pytest.raises(CommandError, match="HTTP status 302"):
        client.call("eth_a")
    with pytest.raises(CommandError, match="does not answer: 'Connection refused'"):
        RpcClient("http://127.0.0.1:1").call("eth_a")
