"""Tests the JSON-RPC client of commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from ophion.cli.main import main
from ophion.cli.node_client import RpcNode, read_token
from ophion.cli.permissions import ChangeOptions, _dry_run
from ophion.errors import CommandError
from ophion.runtime.blocking_json_rpc import NoAnswer
from tests.unit.hostile_node import BLOCK, ODD_ANSWERS, hostile_node

_ACCOUNT = "0x2222222222222222222222222222222222222222"
_GROUP = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
COMMANDS = (
    "permissions list",
    "permissions admins",
    f"permissions add {_ACCOUNT} --key-file={{key}} --wait=1",
    "privacy status",
    f"privacy call --group={_GROUP} --to={_ACCOUNT}",
    f"privacy send --key-file={{key}} --group={_GROUP} --to={_ACCOUNT} --wait=1",
    f"privacy send --key-file={{key}} --from={_GROUP} --group={_GROUP} --to={_ACCOUNT} --wait=1",
    f"proof export --account={_ACCOUNT} --block=1 --to={{key}}.json",
)


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


@pytest.mark.parametrize("command", COMMANDS)
def test_an_odd_answer_is_one_line_without_escapes(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "key"
    key.write_text("0x" + "11" * 32)  # this key is a public test key
    words = command.format(key=key).split()
    odd_objects = ({"mode": "\x1b[31m", "keys": ["\x1b[31m"]}, BLOCK, [BLOCK], "0x1", True)
    with hostile_node() as node:
        for odd in (*ODD_ANSWERS, *odd_objects):
            node.answers = _Always(odd)
            code = main([*words, f"--rpc={node.url}"])
            shown = capsys.readouterr()
            assert (shown.out + shown.err).replace("\n", "").isprintable()
            assert code in (0, 1), shown.err


class _Always(dict[str, object]):
    """Gives one answer to every method."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def __contains__(self, method: object) -> bool:
        return True

    def __getitem__(self, method: str) -> object:
        return self._answer


def test_a_failed_dry_run_stops_a_change_of_permissions(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    def dry_run(error: bytes, **options: bool) -> None:
        _dry_run(ChangeOptions(**options), RpcNode(service + error.hex()), {"addAccounts": [_ACCOUNT]})

    with pytest.raises(CommandError, match=r"^Nothing was changed: the consequences are unknown \(perm_dryRun: busy\)"):
        dry_run(b'{"error":{"code":-32603,"message":"busy"}}')
    dry_run(b'{"error":{"code":-32603,"message":"busy"}}', is_forced=True)
    dry_run(b'{"error":{"code":-32603,"message":"busy"}}', is_dry=True)
    dry_run(b'{"error":{"code":-32601,"message":"Method not found"}}')  # a node of another client
    assert capsys.readouterr().out.count("The consequences are unknown") == 3


def test_a_change_that_the_dry_run_refuses_is_not_made(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The dry run of a refused change has no effects, so its quorum says nothing."""
    validators = {"losesQuorum": False, "reachableAfter": 4, "total": 4, "quorum": 3}
    found = {"problem": "no such \x1b node", "connectionsClosed": [], "sendersShutOut": {}, "validators": validators}
    reply = json.dumps({"result": found}).encode()

    def dry_run(**options: bool) -> None:
        _dry_run(ChangeOptions(**options), RpcNode(service + reply.hex()), [{"to": _ACCOUNT, "data": "0x"}])

    with pytest.raises(CommandError, match=r"^Nothing was changed: the consequences are unknown \(no such \\x1b node"):
        dry_run()
    dry_run(is_forced=True)
    dry_run(is_dry=True)
    assert capsys.readouterr().out.count("The consequences are unknown: no such \\x1b node") == 2
