"""The source of a fork reports every failure of its client as an error of the fork."""

from __future__ import annotations

import http.server
import json
import threading

import pytest

from ophion.dev.fork.settings import ForkSettings
from ophion.dev.fork.source_client import ForkSource
from ophion.errors import ForkSourceError


def test_a_source_that_is_away_is_one_error_without_the_secret_part_of_its_address() -> None:
    waits: list[float] = []
    settings = ForkSettings("http://user:secret@127.0.0.1:1/key?token=1", retries=2, headers=("X-Name: value",))
    source = ForkSource(settings, sleep=waits.append)
    with pytest.raises(ForkSourceError, match="does not answer .Connection refused.*Check --fork-url") as caught:
        source.batch([("eth_one", [])])
    assert source.name == "http://127.0.0.1:1"
    assert "secret" not in caught.value.message
    assert "key" not in caught.value.message
    assert (waits, source.requests) == ([1.0, pytest.approx(2.0, abs=0.1)], 3)


def test_only_http_addresses_are_taken() -> None:
    for url in ("ws://127.0.0.1", "127.0.0.1:8545", "http://"):
        with pytest.raises(ForkSourceError, match="must begin with http"):
            ForkSource(ForkSettings(url))


def test_the_next_node_is_asked_when_one_does_not_answer() -> None:
    asked: list[str] = []

    class Answering(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            calls = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            body = json.dumps([{"jsonrpc": "2.0", "id": call["id"], "result": "0x5"} for call in calls]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Answering) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        other = f"http://127.0.0.1:{server.server_port}"
        settings = ForkSettings("http://127.0.0.1:1", retries=0, other_urls=(other,))
        source = ForkSource(settings, sleep=lambda seconds: None)
        assert source.batch([("eth_chainId", []), ("eth_blockNumber", [])]) == ["0x5", "0x5"]
        assert source.name == other
        before = source.requests
        source.batch([("eth_chainId", []), ("eth_blockNumber", [])])
        assert source.requests == before + 1, "the node that has answered is asked first"
        server.shutdown()
    assert asked == ["/", "/"]
