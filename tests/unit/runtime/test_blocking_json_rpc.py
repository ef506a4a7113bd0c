"""The blocking JSON-RPC client matches answers to calls, repeats requests, and reports every failure as one error."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ophion.errors import CommandError
from ophion.runtime import blocking_json_rpc
from ophion.runtime.blocking_json_rpc import MAX_UNREACHABLE_S, Failure, JsonRpcClient, NoAnswer, RetryPolicy


class Server(ThreadingHTTPServer):
    """Answers each call with its method and parameters, or with the answer that the test has set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content: bytes | None = None
        self.statuses: list[int] = []
        """Statuses of the next replies. The status is 200 when the list is empty; 0 closes the connection without a
        reply.
        """
        self.takes_batches = True
        self.seen: list[tuple[Any, dict[str, str], str]] = []
        self.connections = 0

    def answer(self, content: Any) -> None:
        self.content = json.dumps(content).encode()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((body, dict(self.headers), self.path))
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 0:
            self.close_connection = True
            return
        content = self.server.content
        if content is None:
            answer: Any = [_answer(one) for one in body] if isinstance(body, list) else _answer(body)
            if isinstance(body, list) and not self.server.takes_batches:
                answer = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no batches"}}
            content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""


def _answer(call: dict[str, Any]) -> dict[str, Any]:
    if call["method"] == "bad":
        return {"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32601, "message": "no such method"}}
    return {"jsonrpc": "2.0", "id": call["id"], "result": [call["method"], call["params"]]}


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield made
        made.shutdown()


def client_of(server: Server, **options: Any) -> JsonRpcClient:
    return JsonRpcClient(f"http://127.0.0.1:{server.server_port}/key?token=1", **options)


def test_answers_are_sorted_by_id(server: Server) -> None:
    client = client_of(server, token="secret")
    server.answer([{"id": 1, "error": {"code": -32601, "message": "no"}}, {"id": 0, "result": "0x1"}])
    assert client.batch([("eth_a", []), ("eth_b", [1])]) == ["0x1", Failure(-32601, "no")]
    sent, headers, path = server.seen[0]
    assert [(call["method"], call["params"]) for call in sent] == [("eth_a", []), ("eth_b", [1])]
    assert (headers["Authorization"], path) == ("Bearer secret", "/key?token=1")
    server.answer({"id": 0, "result": None})
    assert client.call("eth_a") is None
    server.answer({"id": 0, "error": {"code": -32000, "message": "bad\x1b"}})
    with pytest.raises(CommandError, match=r"refuses eth_a: bad\\x1b \(-32000\)"):
        client.call("eth_a")
    assert server.connections == 1


@pytest.mark.parametrize(
    "content", [[], [{"id": 0}], [{"id": 7}, {"id": 0}], [{"id": []}, {"id": 0, "result": 1}], "text", [1, 2], 3]
)
def test_other_answers_are_no_json_rpc(server: Server, content: Any) -> None:
    server.answer(content)
    with pytest.raises(NoAnswer, match="does not answer: the response is not JSON-RPC"):
        client_of(server).batch([("eth_a", []), ("eth_b", [])])


def test_failures_of_http_are_named(server: Server) -> None:
    server.content = b"<html>"
    with pytest.raises(NoAnswer, match="not JSON-RPC"):
        client_of(server).call("eth_a")
    server.statuses = [302]
    with pytest.raises(NoAnswer, match="HTTP status 302") as caught:
        client_of(server).call("eth_a")
    assert caught.value.status == 302
    with pytest.raises(NoAnswer, match="does not answer: Connection refused"):
        JsonRpcClient("http://127.0.0.1:1").call("eth_a")


def test_an_error_reply_counts_with_any_status_but_a_refused_token(server: Server) -> None:
    server.answer({"id": 0, "error": {"code": -40100, "message": "Unauthorized"}})
    server.statuses = [400, 401]
    assert client_of(server).batch([("eth_a", [])]) == [Failure(-40100, "Unauthorized")]
    with pytest.raises(NoAnswer, match="HTTP status 401 Unauthorized"):
        client_of(server).call("eth_a")


def test_a_large_reply_is_refused(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_json_rpc, "MAX_REPLY_BYTES", 100)
    with pytest.raises(NoAnswer, match="more than 100 bytes"):
        client_of(server).call("eth_a", "x" * 100)


def test_calls_travel_in_batches(server: Server) -> None:
    client = client_of(server, max_batch_calls=3)
    assert client.batch([("eth_a", [number]) for number in range(4)]) == [["eth_a", [number]] for number in range(4)]
    assert client.requests == 2
    assert client.results([("eth_a", []), ("eth_b", [])]) == [["eth_a", []], ["eth_b", []]]
    with pytest.raises(CommandError, match="refuses bad: no such method"):
        client.results([("eth_a", []), ("bad", [])])


def test_a_node_without_batches_is_asked_one_by_one(server: Server) -> None:
    server.takes_batches = False
    client = client_of(server)
    assert client.batch([("eth_a", []), ("eth_b", [])]) == [["eth_a", []], ["eth_b", []]]
    assert client.requests == 3


def test_a_closed_idle_connection_is_replaced(server: Server) -> None:
    client = client_of(server)
    client.call("eth_a")
    server.statuses = [0]
    assert client.call("eth_b") == ["eth_b", []]
    assert client.requests == 3


def test_failed_requests_are_repeated_with_growing_waits(server: Server) -> None:
    waits: list[float] = []
    client = client_of(server, retry=RetryPolicy(3, 1.0), sleep=waits.append)
    server.statuses = [0, 503, 429]
    assert client.call("eth_a") == ["eth_a", []]
    assert waits == [1.0, 2.0, 4.0]
    server.statuses = [503] * 4
    with pytest.raises(NoAnswer, match="HTTP status 503") as caught:
        client.call("eth_a")
    assert caught.value.status == 503
    server.answer({"id": 0, "error": {"code": -32005, "message": "limit"}})
    with pytest.raises(NoAnswer, match="rate limit"):
        client.call("eth_a")
    waits.clear()
    client.close()
    with pytest.raises(NoAnswer, match="rate limit"):
        client.call("eth_a")
    assert waits == []


@pytest.mark.parametrize(
    ("host", "why"), [("127.0.0.1", "Connection refused"), ("no-such-host.invalid", "not known|resolution")]
)
def test_a_host_without_connections_is_retried_for_a_few_seconds_only(host: str, why: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    waits: list[float] = []
    client = JsonRpcClient(f"http://{host}:{port}", retry=RetryPolicy(50, 0.5), sleep=waits.append)
    with pytest.raises(NoAnswer, match=why):
        client.call("eth_a")
    assert sum(waits) <= MAX_UNREACHABLE_S


def test_a_host_that_comes_back_soon_is_used() -> None:
    with Server() as server, ExitStack() as stack:
        port = server.server_port
        server.socket.close()

        def start(_: float) -> None:
            server.socket = socket.create_server(("127.0.0.1", port))
            threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            stack.callback(server.shutdown)

        client = JsonRpcClient(f"http://127.0.0.1:{port}", retry=RetryPolicy(1, 0.5), sleep=start)
        assert client.call("eth_a") == ["eth_a", []]


def test_errors_do_not_show_the_secret_part_of_the_url(server: Server) -> None:
    client = JsonRpcClient(f"http://user:secret@127.0.0.1:{server.server_port}/key?token=1")
    server.statuses = [503]
    server.content = b""
    with pytest.raises(NoAnswer) as caught:
        client.call("eth_a")
    assert f"http://127.0.0.1:{server.server_port} does not" in caught.value.message
    assert server.seen[0][1]["Authorization"] == "Basic dXNlcjpzZWNyZXQ="


@pytest.mark.parametrize("url", ["ws://127.0.0.1", "127.0.0.1:8545", "http://", "http://[1", "http://a:port"])
def test_only_http_urls_are_accepted(url: str) -> None:
    with pytest.raises(NoAnswer, match="must begin with http"):
        JsonRpcClient(url)


def test_a_response_that_arrives_byte_by_byte_ends_after_a_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def drip() -> None:
            connection, _ = listener.accept()
            with connection, contextlib.suppress(OSError):
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
                while not ended.wait(0.02):
                    connection.sendall(b"x")

        thread = threading.Thread(target=drip, daemon=True)
        thread.start()
        client = JsonRpcClient(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=1)
        with pytest.raises(NoAnswer, match="takes too long"):
            client.call("eth_chainId")
        ended.set()
        thread.join()


def test_an_answer_of_the_wrong_form_is_an_error_of_the_node(server: Server) -> None:
    client = JsonRpcClient(f"http://127.0.0.1:{server.server_port}")
    failure = pytest.raises(CommandError, match="gives an invalid answer for eth_chainId: ValueError")
    with failure as raised, client.reading("eth_chainId"):
        int("\x1b[1m", 16)
    assert "\x1b" not in str(raised.value)
