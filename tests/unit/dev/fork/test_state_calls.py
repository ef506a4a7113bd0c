"""Tests reads of state from nodes with and without proofs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from ophion.dev.fork.settings import ForkSettings
from ophion.dev.fork.source_client import ForkSource
from ophion.dev.fork.state_calls import StateCalls
from ophion.errors import ForkSourceError
from ophion.native.crypto import keccak256
from ophion.native.fork import ForkState

CODE = "0x6001"
CODE_HASH = "0x" + keccak256(bytes.fromhex(CODE[2:])).hex()
CONTRACTS = [bytes([number]) * 20 for number in range(1, 7)]
ABSENT = bytes(19) + b"\x99"
SLOT = bytes(32)


class Server(HTTPServer):
    """A node on which all contracts have the same code, and slot 0 has the value 7."""

    methods: list[str]
    has_proofs: bool
    has_state: bool


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = [self._answer(one) for one in body] if isinstance(body, list) else self._answer(body)
        text = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        name, params, server = call["method"], call["params"], self.server
        server.methods.append(name)
        is_there = params[0] != "0x" + ABSENT.hex()
        results = {
            "eth_getTransactionCount": "0x1" if is_there else "0x0",
            "eth_getBalance": "0x5" if is_there else "0x0",
            "eth_getCode": CODE if is_there else "0x",
            "eth_getStorageAt": f"0x{7:064x}",
            "eth_getProof": {
                "nonce": "0x1" if is_there else "0x0",
                "balance": "0x5" if is_there else "0x0",
                "codeHash": CODE_HASH if is_there else "0x" + 64 * "0",
                "storageProof": [{"value": "0x7"} for _ in params[1]] if is_there else [],
            },
        }
        if not server.has_state or (name == "eth_getProof" and not server.has_proofs):
            code = -32601 if server.has_state else -32000
            return {"jsonrpc": "2.0", "id": call["id"], "error": {"code": code, "message": "missing trie node"}}
        return {"jsonrpc": "2.0", "id": call["id"], "result": results[name]}

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.methods, made.has_proofs, made.has_state = [], True, True
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def read(server: Server, count: int) -> tuple[dict[str, Any], ForkSource]:
    source = ForkSource(ForkSettings(f"http://127.0.0.1:{server.server_port}", retries=0))
    state = ForkState(5, lambda address, slot, number: False)
    keys: list[tuple[bytes | None, bytes | None, int | None]] = [(one, SLOT, None) for one in CONTRACTS[:count]]
    return StateCalls("0x5").fetch(source, [*keys, (ABSENT, SLOT, None)], state, []).record(), source


def expected(count: int, value: str, missing: str) -> dict[str, Any]:
    names = ["0x" + one.hex() for one in CONTRACTS[:count]]
    absent = "0x" + ABSENT.hex()
    slot = "0x" + SLOT.hex()
    return {
        "accounts": {name: [1, "0x5", CODE_HASH] for name in names} | {absent: None},
        "slots": {name: {slot: value} for name in names} | {absent: {slot: missing}},
        "codes": [CODE],
    }


def test_one_call_reads_an_account_and_equal_code_is_asked_for_once(server: Server) -> None:
    found, source = read(server, 6)
    assert found == expected(6, "0x7", "0x0")
    assert server.methods.count("eth_getProof") == 7
    assert server.methods.count("eth_getCode") == 1
    assert source.requests == 2


def test_few_accounts_take_one_request(server: Server) -> None:
    found, source = read(server, 1)
    assert found == expected(1, "0x7", "0x0")
    assert source.requests == 1


def test_a_node_without_proofs_is_asked_for_each_part(server: Server) -> None:
    server.has_proofs = False
    found, source = read(server, 2)
    assert found == expected(2, f"0x{7:064x}", f"0x{7:064x}")
    assert source.requests == 2


def test_a_state_that_the_source_has_pruned_is_one_clear_error(server: Server) -> None:
    server.has_state = False
    with pytest.raises(ForkSourceError, match=r"cannot read the state of block 5: missing trie node.*archive node"):
        read(server, 1)
