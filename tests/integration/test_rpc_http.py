"""Tests JSON-RPC over HTTP with a real process and real sockets, including misuse."""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction

BLOCK_NUMBER = b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    options = ("--rpc-http-api=ETH,NET,WEB3,TXPOOL,DEBUG", "--rpc-http-cors-origins=http://page.example")
    with NodeProcess(tmp_path_factory.mktemp("http") / "data", *MINING, *options) as running:
        yield running


def connect(node: NodeProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", node.ports["json-rpc"]), timeout=60)


def post(body: bytes, *headers: str) -> bytes:
    lines = ["POST / HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def answers(connection: socket.socket, count: int) -> list[Any]:
    """Read `count` JSON answers from a connection."""
    data, found = b"", []
    while len(found) < count:
        head, separator, rest = data.partition(b"\r\n\r\n")
        if separator:
            size = int(next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length")).split(b":")[1])
            if len(rest) >= size:
                found.append(json.loads(rest[:size]))
                data = rest[size:]
                continue
        received = connection.recv(65536)
        assert received, "the connection was closed"
        data += received
    return found


def test_many_requests_go_over_one_connection_one_by_one_and_pipelined(node: NodeProcess) -> None:
    with connect(node) as connection:
        for _ in range(3):
            connection.sendall(post(BLOCK_NUMBER))
            assert answers(connection, 1)[0]["result"].startswith("0x")
        requests = [b'{"id":%d,"method":"eth_estimateGas","params":[{}]}' % number for number in range(40)]
        connection.sendall(b"".join(post(body) for body in requests))
        assert [answer["id"] for answer in answers(connection, 40)] == list(range(40))


def test_a_request_may_come_slowly_and_in_chunks(node: NodeProcess) -> None:
    with connect(node) as connection:
        for piece in (b"POST / HTTP/1.1\r\nHost: loc", b"alhost\r\nTransfer-Encoding: chunked\r\n\r\n"):
            connection.sendall(piece)
            time.sleep(0.02)
        for start in range(0, len(BLOCK_NUMBER), 20):
            part = BLOCK_NUMBER[start : start + 20]
            connection.sendall(b"%x\r\n%b\r\n" % (len(part), part))
            time.sleep(0.005)
        connection.sendall(b"0\r\n\r\n")
        assert answers(connection, 1)[0]["id"] == 1


def test_a_client_may_wait_for_permission_to_send_its_body(node: NodeProcess) -> None:
    with connect(node) as connection:
        whole = post(BLOCK_NUMBER, "Expect: 100-continue")
        connection.sendall(whole[: -len(BLOCK_NUMBER)])
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(BLOCK_NUMBER)
        assert answers(connection, 1)[0]["id"] == 1


def test_browsers_of_the_right_page_are_served(node: NodeProcess) -> None:
    client = http.client.HTTPConnection("127.0.0.1", node.ports["json-rpc"], timeout=60)
    preflight = {"Origin": "http://page.example", "Access-Control-Request-Method": "POST"}
    client.request("OPTIONS", "/", headers=preflight)
    response = client.getresponse()
    assert (response.status, response.read()) == (200, b"")
    assert response.headers["Access-Control-Allow-Origin"] == "http://page.example"
    client.request("POST", "/", BLOCK_NUMBER, {"Origin": "http://evil.example"})
    response = client.getresponse()
    assert response.status == 403
    response.read()
    client.request("POST", "/", BLOCK_NUMBER, {"Host": "evil.example"})
    assert client.getresponse().status == 403


def test_a_large_batch_is_answered_in_order(node: NodeProcess) -> None:
    batch = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number in range(500)
        for method, params in [
            ("eth_call", [{"to": f"0x{0x10000 + number:040x}"}]) if number % 2 else ("eth_chainId", [])
        ]
    ]
    with connect(node) as connection:
        connection.sendall(post(json.dumps(batch).encode()))
        (found,) = answers(connection, 1)
    assert [answer["id"] for answer in found] == list(range(500))
    assert all("result" in answer for answer in found)


def test_long_answers_are_compressed_for_clients_that_ask(node: NodeProcess) -> None:
    """The node compresses a long batch and a streamed trace."""
    blocks = [{"id": n, "method": "eth_getBlockByNumber", "params": ["0x0", False]} for n in range(100)]
    # this contract runs a loop 20,000 times
    loop = {"to": "0x" + "aa" * 20, "gas": "0xf42400"}
    code = {"0x" + "aa" * 20: {"code": "0x614e205b6001900380600357"}}
    trace = {"id": 1, "method": "debug_traceCall", "params": [loop, "latest", {"stateOverrides": code}]}
    for request in (blocks, trace):
        bodies, sizes = [], []
        for wanted in ("gzip", "identity"):
            connection = http.client.HTTPConnection("127.0.0.1", node.ports["json-rpc"], timeout=60)
            for _ in range(2):  # the node answers the second request with the cached HTTP request head
                connection.request("POST", "/", json.dumps(request), {"Accept-Encoding": wanted})
                response = connection.getresponse()
                encoding, body = response.headers.get("Content-Encoding"), response.read()
                assert encoding == ("gzip" if wanted == "gzip" else None)
                sizes.append(len(body))
                bodies.append(body if encoding is None else gzip.decompress(body))
            connection.close()
        assert len(set(bodies)) == 1
        assert sizes[0] < sizes[2] / 4


def test_many_clients_at_once_get_their_own_answers(node: NodeProcess) -> None:
    def client(number: int) -> list[int]:
        with connect(node) as connection:
            ids = []
            for step in range(30):
                body = b'{"id":%d,"method":"eth_getBalance","params":["0x%x"]}' % (number * 1000 + step, number)
                connection.sendall(post(body))
                ids.append(answers(connection, 1)[0]["id"])
            return ids

    with ThreadPoolExecutor(40) as threads:
        for number, ids in enumerate(threads.map(client, range(40))):
            assert ids == [number * 1000 + step for step in range(30)]


def test_raw_transactions_sent_together_are_all_mined(node: NodeProcess) -> None:
    start = int(node.rpc("eth_getTransactionCount", "0x" + DEV_KEYS[2].address.hex(), "pending"), 16)
    raws = [legacy_transaction(DEV_KEYS[2], start + number).hex() for number in range(200)]
    bodies = [b'{"id":1,"method":"eth_sendRawTransaction","params":["0x%b"]}' % raw.encode() for raw in raws]
    with connect(node) as connection:
        connection.sendall(b"".join(map(post, bodies)))
        hashes = [answer["result"] for answer in answers(connection, len(bodies))]
    for transaction_hash in hashes:
        assert node.receipt(transaction_hash)["status"] == "0x1"


def test_rubbish_is_answered_and_does_no_harm(node: NodeProcess) -> None:
    for rubbish in (b"\x00" * 100, b"GET\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n", post(b"{}", "Content-Length: 7")):
        with connect(node) as connection:
            connection.sendall(rubbish)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
    assert node.rpc("eth_chainId") == "0x7e2"


def test_a_client_that_never_reads_does_not_stop_the_others(node: NodeProcess) -> None:
    with connect(node) as stubborn:
        stubborn.settimeout(2)
        body = post(b"[" + b",".join([b'{"id":1,"method":"rpc.discover"}'] * 50) + b"]")
        with suppress(TimeoutError):
            for _ in range(50):
                stubborn.sendall(body)
        for _ in range(20):
            node.rpc("eth_blockNumber")


def test_old_statuses_limits_and_methods_that_are_off(tmp_path: Path) -> None:
    options = (
        "--network=dev",
        "--rpc-http-error-status-400",
        "--rpc-http-max-batch-size=2",
        "--rpc-http-max-request-content-length=1000",
        "--host-allowlist=node.example",
    )
    with NodeProcess(tmp_path / "data", *options) as node:
        client = http.client.HTTPConnection("127.0.0.1", node.ports["json-rpc"], timeout=60)

        def ask(body: bytes) -> tuple[int, Any]:
            client.request("POST", "/", body, {"Host": "node.example:1"})
            response = client.getresponse()
            text = response.read()
            return response.status, json.loads(text) if text else None

        assert ask(BLOCK_NUMBER)[0] == 200
        status, answer = ask(b'{"id":1,"method":"admin_peers"}')
        assert (status, answer["error"]["code"]) == (400, -32604)
        status, answer = ask(b"[" + b",".join([BLOCK_NUMBER] * 3) + b"]")
        assert (status, answer["error"]["code"]) == (200, -32005)
        assert ask(b"x" * 1001)[0] == 413


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("eth_call", [{"data": "0x5b600056"}, "latest"]),
        ("trace_call", [{"data": "0x5b600056"}, ["trace"], "latest"]),
        ("debug_traceCall", [{"data": "0x5b600056"}, "latest", {"tracer": "callTracer"}]),
    ],
)
def test_work_of_clients_that_have_gone_makes_way_for_others(method: str, params: list[Any], tmp_path: Path) -> None:
    """The node cancels the work of disconnected clients. Otherwise an endless loop could occupy one of few threads for
    ever.
    """
    options = ("--network=dev", "--rpc-http-api=ETH,TRACE,DEBUG", "--rpc-gas-cap=0", "--http-timeout-seconds=3600")
    endless = json.dumps({"id": 1, "method": method, "params": params}).encode()
    with NodeProcess(tmp_path / "data", *options) as node:
        waiting = [connect(node) for _ in range(8)]
        for client in waiting:
            client.sendall(post(endless))
        for client in waiting:
            client.close()
        one = {"data": "0x602a60005260206000f3"}
        assert node.rpc("debug_traceCall", one, "latest", {})["returnValue"].endswith("2a")
        assert node.rpc("eth_call", {**one, "gas": hex(2**40)}, "latest").endswith("2a")
        assert node.stop() == 0
