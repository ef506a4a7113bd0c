"""Measure many WebSocket subscribers and polled filters beside load: python bench/subscribers.py [--subscribers 10000]

One QBFT validator makes a block every second. Clients in several processes subscribe to the logs of a contract, from
different addresses of the loopback network. One more client sends plain transfers at a fixed rate over 16 connections,
and some calls a second to the contract. Each call emits a log. `--filters` installs log filters, and one connection
polls all of them every second. `--slow` subscribers never read.

Prints one JSON line: whether each subscriber received each log exactly once, how late blocks were (from timestamp to
the announcement of newHeads), when the last subscriber had a log, transfers per second, processor time and memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import select
import socket
import tempfile
import time
from collections import Counter
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from http_request import request
from websockets.asyncio.client import connect

from ophion.native.crypto import PrivateKey
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction

SENDERS = 64
CONNECTIONS = 16
TICK_S = 0.005
FILTERS_A_CLIENT = 2_000
EMITTER = bytes.fromhex("600a600c600039600a6000f3" + "60206000a000" + "00" * 4)
"""Creation of a contract that emits a log of 32 bytes without topics."""
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def masked(text: bytes) -> bytes:
    """Return a text frame of a client, with a mask of zeros."""
    size = bytes((0x80 | len(text),)) if len(text) < 126 else b"\xfe" + len(text).to_bytes(2, "big")
    return b"\x81" + size + bytes(4) + text


class Subscriber:
    """A raw WebSocket that counts its notifications."""

    def __init__(self, port: int, source: str, contract: str, is_slow: bool) -> None:
        self.socket = socket.socket()
        if is_slow:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.bind((source, 0))
        self.socket.connect(("127.0.0.1", port))
        self.socket.sendall(HANDSHAKE)
        received = b""
        while b"\r\n\r\n" not in received:
            received += self.socket.recv(4096)
        self._rest = received.partition(b"\r\n\r\n")[2]
        ask = {"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["logs", {"address": contract}]}
        self.socket.sendall(masked(json.dumps(ask).encode()))
        # count from -1, because the first message is not a notification but the response to eth_subscribe
        self.count = -1
        self.is_lost = False
        while self.count < 0:
            self.receive()
        self.socket.setblocking(False)

    def receive(self) -> int:
        """Read all available data. Returns the number of complete messages."""
        data = self.socket.recv(1 << 16)
        if not data:
            self.is_lost = True
            return 0
        data, found = self._rest + data, 0
        while len(data) >= 4:
            size, begin = data[1], 2
            if size == 126:
                size, begin = int.from_bytes(data[2:4], "big"), 4
            if len(data) < begin + size:
                break
            if data[0] == 0x81:
                found += 1
            elif data[0] == 0x89:
                self.socket.send(b"\x8a\x80" + bytes(4))
            data = data[begin + size :]
        self._rest = data
        self.count += found
        return found


def subscribe(port: int, process: int, count: int, slow: int, contract: str, pipe: Connection) -> None:
    """Run `count` subscribers in this process until a stop signal, then send their counts."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 512), hard))
    clients = [Subscriber(port, f"127.0.{process}.{1 + index % 200}", contract, index < slow) for index in range(count)]
    watched = select.epoll()
    of_file = {client.socket.fileno(): client for client in clients[slow:]}
    for file in of_file:
        watched.register(file, select.EPOLLIN)
    pipe.send("ready")
    last = 0.0
    # each pair holds the arrival times of the first and the last notification of one burst
    lags: list[tuple[float, float]] = []
    while not pipe.poll():
        for file, _event in watched.poll(0.05):
            now = time.time()
            client = of_file[file]
            with suppress(BlockingIOError, ConnectionError):
                if client.receive():
                    if now - last > 0.3:
                        lags.append((now, now))
                    last = now
                    lags[-1] = (lags[-1][0], now)
            if client.is_lost:
                watched.unregister(file)
    pipe.send(([client.count for client in clients[slow:]], sum(client.is_lost for client in clients), lags))


def transfers(count: int) -> list[bytes]:
    """Return HTTP requests that send signed transfers of alternating senders."""
    seed = time.time_ns() % 2**60
    keys = [PrivateKey((seed * 1000 + number).to_bytes(32, "big")) for number in range(1, SENDERS + 1)]
    made = []
    for index in range(count):
        raw = legacy_transaction(
            keys[index % SENDERS], index // SENDERS, gas_price=0, to=b"\1" * 20, value=0, chain_id=CHAIN_ID
        )
        made.append(request("eth_sendRawTransaction", "0x" + raw.hex()))
    return made


async def load(port: int, requests: list[bytes], rate: float) -> None:
    """Send `rate` transfers per second."""
    loop = asyncio.get_running_loop()
    clients = [(await loop.create_connection(asyncio.Protocol, "127.0.0.1", port))[0] for _ in range(CONNECTIONS)]
    began, sent = loop.time(), 0
    while sent < len(requests):
        due = min(int((loop.time() - began) * rate), len(requests))
        for index in range(sent, due):
            # a sender always uses the same connection, so that its transactions arrive in order
            clients[index % CONNECTIONS].write(requests[index])
        sent = due
        await asyncio.sleep(TICK_S)
    await asyncio.sleep(1.5)
    for client in clients:
        client.close()


async def heads(port: int, found: list[tuple[float, int]]) -> None:
    async with connect(f"ws://127.0.0.1:{port}") as connection:
        await connection.send(
            json.dumps({"id": 1, "jsonrpc": "2.0", "method": "eth_subscribe", "params": ["newHeads"]})
        )
        await connection.recv()
        while True:
            head = json.loads(await connection.recv())["params"]["result"]
            found.append((time.time(), int(head["timestamp"], 16)))


async def emit(node: NodeProcess, contract: bytes, rate: float, seconds: float, first: int) -> int:
    """Call the contract at this rate. Returns the number of calls."""
    reader, writer = await asyncio.open_connection("127.0.0.1", node.ports["json-rpc"])
    count = int(rate * seconds)
    for index in range(count):
        raw = legacy_transaction(
            DEV_KEYS[0], first + index, gas_price=0, to=contract, gas=60_000, value=0, chain_id=CHAIN_ID
        )
        writer.write(request("eth_sendRawTransaction", "0x" + raw.hex()))
        await asyncio.sleep(1 / rate)
    writer.close()
    del reader
    return count


async def poll(port: int, contract: str, count: int, found: dict[str, Any], ready: asyncio.Event) -> None:
    """Install filters and poll all of them every second, in batches of 100."""
    # the node allows each client address a quarter of all filters, so several addresses create the filters
    connections = [
        await asyncio.open_connection("127.0.0.1", port, limit=1 << 26, local_addr=(f"127.0.9.{1 + index}", 0))
        for index in range(-(-count // FILTERS_A_CLIENT))
    ]

    async def batch(first: int, calls: list[tuple[str, list[object]]]) -> list[Any]:
        reader, writer = connections[first // FILTERS_A_CLIENT]
        entries = [{"jsonrpc": "2.0", "id": 1, "method": method, "params": params} for method, params in calls]
        body = json.dumps(entries).encode()
        writer.write(
            b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % len(body)
        )
        writer.write(body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        answers = json.loads(await reader.readexactly(int(length.split(b":")[1])))
        failed = next((one for one in answers if "result" not in one), None)
        assert failed is None, failed
        return [one["result"] for one in answers]

    ids: list[str] = []
    while len(ids) < count:
        ids += await batch(len(ids), [("eth_newFilter", [{"address": contract}])] * 100)
    found["logs"] = [0] * len(ids)
    ready.set()
    while True:
        began = time.perf_counter()
        for start in range(0, len(ids), 100):
            part = ids[start : start + 100]
            for offset, logs in enumerate(await batch(start, [("eth_getFilterChanges", [one]) for one in part])):
                found["logs"][start + offset] += len(logs)
        found["slowest_s"] = max(found.get("slowest_s", 0.0), time.perf_counter() - began)
        await asyncio.sleep(max(0.0, 1 - (time.perf_counter() - began)))


def memory_mb(pid: int, field: str = "VmRSS") -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith(field)) // 1024


async def measure(node: NodeProcess, chosen: argparse.Namespace, contract: bytes, requests: list[bytes]) -> Any:
    seen: list[tuple[float, int]] = []
    filters: dict[str, Any] = {}
    side = [asyncio.create_task(heads(node.ports["ws-rpc"], seen))]
    if chosen.filters:
        ready = asyncio.Event()
        polling = poll(node.ports["json-rpc"], "0x" + contract.hex(), chosen.filters, filters, ready)
        side.append(asyncio.create_task(polling))
        await asyncio.wait([side[-1], asyncio.ensure_future(ready.wait())], return_when=asyncio.FIRST_COMPLETED)
        if side[-1].done():
            await side[-1]
    emitted, _ = await asyncio.gather(
        emit(node, contract, chosen.events, chosen.seconds, 1), load(node.ports["json-rpc"], requests, chosen.rate)
    )
    await asyncio.sleep(8)
    for task in side:
        if task.done():
            task.result()  # if the task has failed, `result` raises its exception
        task.cancel()
    late = sorted(at - timestamp for at, timestamp in seen[1:])
    found: dict[str, Any] = {
        "events": emitted,
        "transfers": len(requests),
        "blocks": len(seen),
        "late_ms_median": round(1e3 * late[len(late) // 2]),
        "late_ms_worst": round(1e3 * late[-1]),
    }
    if chosen.filters:
        found["filters_complete"] = sum(count == emitted for count in filters["logs"])
        found["filter_counts"] = dict(Counter(filters["logs"]).most_common(6))
        found["poll_of_all_s"] = round(filters.get("slowest_s", 0.0), 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--subscribers", type=int, default=10_000)
    parser.add_argument("--slow", type=int, default=0, help="subscribers that never read")
    parser.add_argument("--filters", type=int, default=0)
    parser.add_argument("--rate", type=float, default=2_000, help="transfers a second")
    parser.add_argument("--events", type=float, default=2, help="logs a second")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--processes", type=int, default=3)
    chosen = parser.parse_args()
    options = (
        "--tx-pool-max-size=200000",
        "--rpc-ws-enabled",
        "--rpc-ws-port=0",
        f"--rpc-ws-max-active-connections={chosen.subscribers + 100}",
    )
    with (
        tempfile.TemporaryDirectory(prefix="ophion-subscribers-") as path,
        TestNetwork(Path(path), "qbft", 1, options=options) as network,
    ):
        node = network.nodes[0]
        raw = legacy_transaction(DEV_KEYS[0], 0, gas_price=0, gas=200_000, to=None, data=EMITTER, chain_id=CHAIN_ID)
        address = node.receipt(node.send(raw))["contractAddress"]
        requests = transfers(int(chosen.rate * chosen.seconds))
        idle = memory_mb(node.pid)
        share = chosen.subscribers // chosen.processes
        context = multiprocessing.get_context("spawn")
        workers = []
        for index in range(chosen.processes):
            here, there = context.Pipe()
            slow = chosen.slow // chosen.processes
            arguments = (node.ports["ws-rpc"], index + 1, share, slow, address, there)
            process = context.Process(target=subscribe, args=arguments, daemon=True)
            process.start()
            workers.append((process, here))
        for _, pipe in workers:
            assert pipe.recv() == "ready"
        connected = memory_mb(node.pid)
        before = network.processor_s()
        found = asyncio.run(measure(node, chosen, bytes.fromhex(address[2:]), requests))
        used = network.processor_s() - before
        for _, pipe in workers:
            pipe.send("stop")
        results = [pipe.recv() for _, pipe in workers]
        for process, _ in workers:
            process.join()
        counts = [count for one in results for count in one[0]]
        waves = [last - first for one in results for first, last in one[2]]
        found |= {
            "subscribers": len(counts),
            "complete": sum(count == found["events"] for count in counts),
            "lost": sum(one[1] for one in results),
            "wave_ms_worst": round(1e3 * max(waves, default=0)),
            "cpu_share": round(used / (chosen.seconds + 5.5), 2),
            "idle_mb": idle,
            "connected_mb": connected,
            "after_mb": memory_mb(node.pid),
            "peak_mb": memory_mb(node.pid, "VmHWM"),
            "load": os.getloadavg()[0],
        }
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
