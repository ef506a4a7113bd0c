"""The JSON-RPC client of commands."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from ophion.cli.node_client import RpcNode, read_token
from ophion.errors import CommandError
from ophion.runtime.blocking_json_rpc import NoAnswer


def test_a_token_is_one_word(tmp_path: Path) -> None:
    file = tmp_path / "token"
    assert read_token(None) is None
    file.write_text("eyJhbGciOiJSUzI1NiJ9.e30.c2ln\n")
    assert read_token(file) == "eyJhbGciOiJSUzI1NiJ9.e30.c2ln"


@pytest.mark.parametrize("content", ["", "\n", "secret one\nsecret two\n", "two words", "s\u00e9cret"])
def test_what_is_no_token_is_refused_and_not_repeated(tmp_path: Path, content: str) -> None:
    file = tmp_path / "token"
    file.write_text(content)
    with pytest.raises(CommandError, match=f"{file} holds no token") as refused:
        read_token(file)
    assert "cret" not in str(refused.value)


class _PathEcho(BaseHTTPRequestHandler):
    """Answers every request with its path."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = bytes.fromhex(self.path[1:])
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Do not log."""


@pytest.fixture
def service() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _PathEcho) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_an_answer_is_a_result_or_the_words_of_the_node(service: str) -> None:
    assert RpcNode(service + b'{"result":null}'.hex()).ask("eth_chainId") is None
    assert RpcNode(service + b'{"result":"0x1","error":null}'.hex()).ask("eth_chainId") == "0x1"
    with pytest.raises(CommandError, match=r"^eth_chainId: Method not enabled \(perm\)$"):
        RpcNode(service + b'{"error":{"message":"Method not enabled","data":"perm"}}'.hex()).ask("eth_chainId")


@pytest.mark.parametrize("body", [b'{"error":"not found"}', b'{"error":["x"]}', b"{}", b"[]", b"hello", b"[" * 20_000])
def test_an_answer_other_than_json_rpc_is_an_error(service: str, body: bytes) -> None:
    node = RpcNode(service + body.hex())
    with pytest.raises(NoAnswer, match=r"does not answer: the response is not JSON-RPC\.$"):
        node.ask("eth_chainId")


def test_a_refused_connection_has_the_message_of_the_system() -> None:
    with pytest.raises(NoAnswer, match=r"does not answer: Connection refused\.$"):
        RpcNode("http://127.0.0.1:1").ask("eth_chainId")
