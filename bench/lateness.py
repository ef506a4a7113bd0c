"""Measure how late blocks are under load: python bench/lateness.py [ibft2 qbft clique dev] [--rate 8000] [--seconds 15]

One node makes a block every second. Clients send signed transfers at a fixed rate over 16 connections, one per request.
The transfers have value 0 and gas price 0, and half of them go to new accounts. Another client requests a balance every
5 milliseconds. The delay of a block is the time from its timestamp to its announcement to a subscriber of newHeads. On
the development network, blocks are made at any fraction of a second. There the delay is measured against the schedule
of the earliest block. Prints one JSON line per network.

--ramp tries several rates instead, to find the highest that the node sustains. --follow measures each rate twice, with
and without `ophion export parquet --follow` beside the node, --rounds times in turns.

--chain continues the QBFT chain that `tables.py` has built in a directory, and the export of `tables` in it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import transfer_chain
from http_request import request
from websockets.asyncio.client import connect

from ophion.native.crypto import PrivateKey
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import NodeProcess, processor_s
from ophion.testing.signing import DEV_CHAIN_ID, legacy_transaction

SENDERS = 64
CONNECTIONS = 16
TICK_S = 0.005
WARM_UP_BLOCKS = 2
OPTIONS = ("--tx-pool-max-size=200000", "--rpc-ws-enabled", "--rpc-ws-port=0")


def transactions(count: int, chain_id: int) -> list[bytes]:
    """Return HTTP requests that send signed transfers of alternating senders."""
    seed = time.time_ns() % 2**60
    keys = [PrivateKey((seed * 1000 + number + 1).to_bytes(32, "big")) for number in range(SENDERS)]
    made = []
    for index in range(count):
        target = (index // 2 + 1).to_bytes(20, "big") if index % 2 else bytes(20)
        raw = legacy_transaction(keys[index % SENDERS], index // SENDERS, gas_price=0, to=target, chain_id=chain_id)
        made.append(request("eth_sendRawTransaction", "0x" + raw.hex()))
    return made


class Counting(asyncio.Protocol):
    """A client that counts answers and discards them."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport


async def load(port: int, requests: list[bytes], rate: float) -> None:
    loop = asyncio.get_running_loop()
    clients = [(await loop.create_connection(Counting, "127.0.0.1", port))[1] for _ in range(CONNECTIONS)]
    began, sent = loop.time(), 0
    while sent < len(requests):
        due = min(int((loop.time() - began) * rate), len(requests))
        for index in range(sent, due):
            # a sender always uses the same connection, so that its transactions arrive in order
            clients[index % CONNECTIONS].transport.write(requests[index])
        sent = due
        await asyncio.sleep(TICK_S)
    for client in clients:
        client.transport.close()


async def balances(port: int, found: list[float]) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    question = request("eth_getBalance", "0x" + "00" * 20, "latest")
    try:
        while True:
            began = time.perf_counter()
            writer.write(question)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
            await reader.readexactly(int(length.split(b":")[1]))
            found.append(time.perf_counter() - began)
            await asyncio.sleep(0.005)
    finally:
        writer.close()


async def heads(port: int, found: list[tuple[float, int, int]]) -> None:
    async with connect(f"ws://127.0.0.1:{port}") as socket:
        await socket.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": ["newHeads"]}))
        await socket.recv()
        while True:
            head = json.loads(await socket.recv())["params"]["result"]
            found.append((time.time(), int(head["timestamp"], 16), int(head["number"], 16)))


async def measure(node: NodeProcess, engine: str, rate: float, seconds: float) -> dict[str, object]:
    requests = transactions(int(rate * seconds), DEV_CHAIN_ID if engine == "dev" else CHAIN_ID)
    waits: list[float] = []
    seen: list[tuple[float, int, int]] = []
    side = [
        asyncio.create_task(heads(node.ports["ws-rpc"], seen)),
        asyncio.create_task(balances(node.ports["json-rpc"], waits)),
    ]
    await asyncio.sleep(3)
    quiet = len(seen)
    waits.clear()
    before, began = processor_s(node.pid), time.time()
    await load(node.ports["json-rpc"], requests, rate)
    lasted, used = time.time() - began, processor_s(node.pid) - before
    for task in side:
        task.cancel()
    await asyncio.wait(side)
    count = lambda number: int(node.rpc("eth_getBlockTransactionCountByNumber", hex(number)), 16)  # noqa: E731
    if engine == "dev":
        start = min(at - number for at, _, number in seen)
        late = [at - number - start for at, _, number in seen]
    else:
        late = [at - timestamp for at, timestamp, _ in seen]
    counted = [count(number) for _, _, number in seen[quiet:]]
    loaded = sorted(late[quiet + WARM_UP_BLOCKS :])
    waits.sort()
    return {
        "rate": rate,
        "offered_tps": round(len(requests) / lasted),
        "mined_tps": round(sum(counted[1:]) / max(1e-9, seen[-1][0] - seen[quiet][0])),
        "late_ms": [round(one * 1000) for one in late[quiet:]],
        "late_median_ms": round(loaded[len(loaded) // 2] * 1000),
        "late_most_ms": round(loaded[-1] * 1000),
        "cpu_us_per_tx": round(used / max(1, sum(counted)) * 1e6),
        "balance_p50_ms": round(waits[len(waits) // 2] * 1000, 2),
        "balance_p99_ms": round(waits[len(waits) * 99 // 100] * 1000, 2),
    }


@contextmanager
def exported(node: NodeProcess, tables: Path, is_on: bool) -> Iterator[None]:
    """Export blocks, transactions and logs beside the node, as they become final. Starts after the export of earlier
    blocks.
    """
    if not is_on:
        yield
        return
    command = [sys.executable, "-m", "ophion", "export", "parquet", "--follow", "--u256=decimal"]
    options = [f"--data-path={node.data_path}", f"--to={tables}", "--final-depth=0"]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "exported last=" not in process.stdout.readline():
            assert process.poll() is None
        yield
        process.send_signal(signal.SIGINT)
        process.communicate()


@contextmanager
def started(engine: str, path: Path, chain: Path | None) -> Iterator[NodeProcess]:
    if engine == "dev":
        node = NodeProcess(path / "node", "--block-period=1", "--min-gas-price=0", *OPTIONS, command=("dev",))
        with node:
            yield node
        return
    network = TestNetwork(chain or path, engine, 1, options=OPTIONS)
    if chain is not None:
        network.genesis_file.write_text(transfer_chain.genesis_text())
    with network:
        yield network.nodes[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", default=["ibft2", "qbft", "clique", "dev"])
    parser.add_argument("--rate", type=float, default=8000)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--ramp", action="store_true")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--chain", type=Path)
    chosen = parser.parse_args()
    for engine in chosen.engines:
        for rate in (2000, 4000, 6000, 8000, 10000) if chosen.ramp else (chosen.rate,):
            for follows in ((False, True) if chosen.follow else (False,)) * chosen.rounds:
                with (
                    tempfile.TemporaryDirectory(prefix="ophion-late-") as folder,
                    started(engine, Path(folder), chosen.chain) as node,
                ):
                    tables = (chosen.chain or Path(folder)) / "tables"
                    with exported(node, tables, follows):
                        found = asyncio.run(measure(node, engine, rate, chosen.seconds))
                    print(json.dumps({"engine": engine, "export": follows, **found}), flush=True)


if __name__ == "__main__":
    main()
