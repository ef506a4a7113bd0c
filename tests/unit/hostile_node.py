"""A JSON-RPC server with scripted answers, valid or not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

ODD_ANSWERS: tuple[Any, ...] = (None, 5, "x", "0xzz", "-0x1", "0x" + "f" * 70, [[]], {"a": 1}, "\x1b[31m\n")
ODD_BODIES: tuple[bytes, ...] = (
    b"",
    b"5",
    b"[]",
    b'[{"id":[1],"result":1}]',
    b'{"id":[1],"error":"x"}',
    b'{"id":1,"error":{"code":"x","message":"\\u001b[31m"}}',
    b'{"id":0,"error":{"code":{},"message":{}}}',
)
ESCAPE_LINE = b"\x1b[31mno HTTP\r\n\r\n"

HASH = "0x" + "11" * 32
ADDRESS = "0x" + "22" * 20
BLOCK: dict[str, Any] = {
    **dict.fromkeys(("parentHash", "sha3Uncles", "stateRoot", "transactionsRoot", "receiptsRoot", "mixHash"), HASH),
    "hash": HASH,
    "miner": ADDRESS,
    "logsBloom": "0x" + "00" * 256,
    "difficulty": "0x1",
    "totalDifficulty": "0x1",
    "number": "0x5",
    "gasLimit": "0x1c9c380",
    "gasUsed": "0x0",
    "timestamp": "0x60000000",
    "extraData": "0x",
    "nonce": "0x" + "00" * 8,
    "size": "0x200",
    "uncles": [],
    "transactions": [],
}


class HostileNode(HTTPServer):
    """Answers each method with its entry in `answers`. If `body` is set, every HTTP response has this body. If `raw` is
    set, it is sent in place of every response.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: Mapping[str, Any] = {}
        self.body: bytes | None = None
        self.raw: bytes | None = None
        """Bytes to send instead of an HTTP response."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: HostileNode

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        node = self.server
        if node.raw is not None:
            self.wfile.write(node.raw)
            return
        content = node.body
        if content is None:
            answer = [self._answer(one) for one in request] if isinstance(request, list) else self._answer(request)
            content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _answer(self, call: dict[str, Any]) -> dict[str, Any]:
        if call["method"] not in self.server.answers:
            return {"jsonrpc": "2.0", "id": call["id"], "error": {"code": -32601, "message": "\x1b[31munknown"}}
        return {"jsonrpc": "2.0", "id": call["id"], "result": self.server.answers[call["method"]]}

    def log_message(self, format: str, *args: Any) -> None:
        """Write no log."""


@contextmanager
def hostile_node() -> Iterator[HostileNode]:
    """Run a `HostileNode` in a thread."""
    with HostileNode() as node:
        thread = threading.Thread(target=node.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield node
        finally:
            node.shutdown()
            thread.join()


def odd_variants(answers: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the answers, each time with one answer, or one key of an object, replaced by an odd value."""
    for method, answer in answers.items():
        for odd in ODD_ANSWERS:
            yield {**answers, method: odd}
        members = answer if isinstance(answer, dict) else {}
        for name in members:
            for odd in ODD_ANSWERS:
                yield {**answers, method: {**members, name: odd}}
