"""The client of a fork's source: batches, retries, errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from ophion.dev.fork.settings import ForkSettings
from ophion.dev.fork.source import MAX_BATCH, Failure, ForkSource
from ophion.errors import ForkSourceError


class Server(HTTPServer):
    """Answers each call with its method and parameters; the first requests fail with `statuses`."""

    statuses: list[int]
    bodies: list[Any]
    takes_batches: bool


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.bodies.append(body)
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if isinstance(body, list) and not self.server.takes_batches:
            answer: Any = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "no batches"}}
        else:
            answer = [_answer(one) for one in body] if isinstance(body, list) else _answer(body)
        text = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""


def _answer(call: dict[str, Any]) -> dict[str, Any]:
    if call["method"] == "bad":
        return {"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32601, "message": "no such method"}}
    return {"jsonrpc": "2.0", "id": call["id"], "result": [call["method"], call["params"]]}


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.statuses, made.bodies, made.takes_batches = [], [], True
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


def source_of(server: Server, waits: list[float] | None = None, retries: int = 2) -> ForkSource:
    url = f"http://user:secret@127.0.0.1:{server.server_port}/key?token=1"
    return ForkSource(ForkSettings(url, retries=retries), sleep=(waits if waits is not None else []).append)


def test_calls_travel_in_batches(server: Server) -> None:
    source = source_of(server)
    calls = [("eth_one", [number]) for number in range(MAX_BATCH + 1)]
    assert source.batch(calls) == [["eth_one", [number]] for number in range(MAX_BATCH + 1)]
    assert source.requests == 2


def test_a_node_without_batches_is_asked_one_by_one(server: Server) -> None:
    server.takes_batches = False
    source = source_of(server)
    assert source.batch([("eth_one", []), ("eth_two", [])]) == [["eth_one", []], ["eth_two", []]]
    assert source.requests == 3


def test_failed_requests_are_repeated_with_growing_waits(server: Server) -> None:
    server.statuses = [503, 429]
    waits: list[float] = []
    assert source_of(server, waits).ask("eth_one") == ["eth_one", []]
    assert waits == [1.0, 2.0]


def test_a_source_that_is_away_is_one_error_without_the_secret_part_of_its_address(server: Server) -> None:
    server.statuses = [503, 503, 503]
    with pytest.raises(ForkSourceError) as caught:
        source_of(server).ask("eth_one")
    assert "does not answer" in caught.value.message
    assert "secret" not in caught.value.message
    assert "key" not in caught.value.message


def test_an_error_response_belongs_to_its_call(server: Server) -> None:
    source = source_of(server)
    assert source.batch([("eth_one", []), ("bad", [])]) == [["eth_one", []], Failure(-32601, "no such method")]
    with pytest.raises(ForkSourceError, match="refused bad: no such method"):
        source.ask("bad")


def test_only_http_addresses_are_taken() -> None:
    for url in ("ws://127.0.0.1", "127.0.0.1:8545", "http://"):
        with pytest.raises(ForkSourceError, match="must begin with http"):
            ForkSource(ForkSettings(url))
