"""Sends long traces from a real node over HTTP, over WebSocket, and to a client that disconnects."""

from __future__ import annotations

import base64
import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.node_process import NodeProcess
from ophion.testing.wait_for import wait_for

CONTRACT = "0x" + "c1" * 20
LOOP = "0x" + "62002710" + "5b6001900380600457" + "00"
"""Code that counts down from 10,000 in 70,000 steps."""
ASKED = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "debug_traceCall",
    "params": [
        {"to": CONTRACT, "gas": hex(10_000_000)},
        "latest",
        {"disableMemory": True, "stateOverrides": {CONTRACT: {"code": LOOP}}},
    ],
}
PORTS = ("--rpc-ws-port=0", "--graphql-http-port=0")
ROWS = 1 + 10_000 * 7 + 1


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    groups = ("--rpc-http-api=ETH,DEBUG", "--rpc-ws-enabled", "--rpc-ws-api=ETH,DEBUG", *PORTS)
    with NodeProcess(tmp_path_factory.mktemp("tracing") / "data", *groups, command=("dev",)) as started:
        yield started


def check(answer: Any) -> None:
    assert answer["id"] == 7
    result = answer["result"]
    assert len(result["structLogs"]) == ROWS
    assert (result["failed"], result["structLogs"][-1]["op"]) == (False, "STOP")


def streams_of(node: NodeProcess) -> int:
    """Return the number of running traces. Each trace has a named thread."""
    count = 0
    for thread in Path(f"/proc/{node.pid}/task").iterdir():
        with suppress(OSError):  # the thread may have ended in the meantime
            count += (thread / "comm").read_text() == "trace\n"
    return count


def ask(node: NodeProcess) -> socket.socket:
    stream = socket.create_connection(("127.0.0.1", node.ports["json-rpc"]), 60)
    body = json.dumps(ASKED).encode()
    stream.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return stream


def test_a_long_trace_arrives_in_chunks(node: NodeProcess) -> None:
    with ask(node) as stream:
        head, body = read_head(stream)
        assert b"transfer-encoding: chunked" in head.lower()
        parts = []
        while True:
            size, _, body = until(stream, body, b"\r\n").partition(b"\r\n")
            count = int(size, 16)
            while len(body) < count + 2:
                body += stream.recv(1 << 20)
            if count == 0:
                break
            parts.append(body[:count])
            body = body[count + 2 :]
        # a part holds at most two reads, and a read returns at most four chunks of 256 kB and one row
        assert max(map(len, parts)) < 9 * 262_144
        assert sum(map(len, parts)) > 5 * max(map(len, parts))
        check(json.loads(b"".join(parts)))
        stream.sendall(b"GET /liveness HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 200 " in read_head(stream)[0]


def test_a_long_trace_arrives_over_a_websocket(node: NodeProcess) -> None:
    with socket.create_connection(("127.0.0.1", node.ports["ws-rpc"]), 60) as stream:
        key = base64.b64encode(os.urandom(16))
        stream.sendall(
            b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: %b\r\nSec-WebSocket-Version: 13\r\n\r\n" % key
        )
        _, rest = read_head(stream)
        send_frame(stream, json.dumps(ASKED).encode())
        send_frame(stream, b'{"jsonrpc":"2.0","id":8,"method":"eth_blockNumber","params":[]}')
        answers: list[Any] = []
        message = b""
        while len(answers) < 2:
            fin, payload, rest = read_frame(stream, rest)
            message += payload
            if fin:
                answers.append(json.loads(message))
                message = b""
        by_id = {answer["id"]: answer for answer in answers}
        assert by_id[8]["result"] == "0x0"
        check(by_id[7])


def test_the_work_stops_when_the_client_goes_away(node: NodeProcess) -> None:
    streams = [ask(node) for _ in range(4)]
    for stream in streams:
        stream.recv(1 << 16)
    assert streams_of(node) == len(streams)
    for stream in streams:
        stream.close()
    wait_for(lambda: not streams_of(node))
    assert node.rpc("eth_blockNumber") == "0x0"


def read_head(stream: socket.socket) -> tuple[bytes, bytes]:
    received = until(stream, b"", b"\r\n\r\n")
    head, _, rest = received.partition(b"\r\n\r\n")
    return head, rest


def until(stream: socket.socket, received: bytes, mark: bytes) -> bytes:
    while mark not in received:
        piece = stream.recv(1 << 16)
        assert piece, "the connection was closed"
        received += piece
    return received


def send_frame(stream: socket.socket, payload: bytes) -> None:
    """Send one masked text frame. The mask is zero, so the payload is unchanged."""
    size = bytes((0x80 | len(payload),)) if len(payload) < 126 else b"\xfe" + len(payload).to_bytes(2, "big")
    stream.sendall(b"\x81" + size + bytes(4) + payload)


def read_frame(stream: socket.socket, buffer: bytes) -> tuple[bool, bytes, bytes]:
    """Return whether the frame ends its message, the payload, and the following bytes."""

    def need(count: int) -> None:
        nonlocal buffer
        pieces, have = [buffer], len(buffer)
        while have < count:
            piece = stream.recv(1 << 20)
            assert piece, "the connection was closed"
            pieces.append(piece)
            have += len(piece)
        buffer = b"".join(pieces)

    need(2)
    fin, size, start = bool(buffer[0] & 0x80), buffer[1], 2
    if size >= 126:
        width = 2 if size == 126 else 8
        need(2 + width)
        size, start = int.from_bytes(buffer[2 : 2 + width], "big"), 2 + width
    need(start + size)
    return fin, buffer[start : start + size], buffer[start + size :]
