"""Measure how punctual proof-of-authority nodes are, and how many transactions they mine, compared with the dev
network.

    python bench/poa_blocks.py [--idle 60] [--seconds 60] [ENGINE ...]

Each ENGINE (dev, clique, ibft2, qbft) is a network of one node with a period of a second. The delay of a block is the
time from its timestamp until a client sees it. First, no transactions are sent for `--idle` blocks. Then, for
`--seconds`, a client posts signed transfers over eight connections as fast as they are answered, and mined ones are
counted. The client waits while many are pending, so that pools do not overflow. Compare only ratios within one run on
an idle machine; the load average is printed too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop
from http_request import request

from ophion.cli.rlp import ExtraDataType, extra_data
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction

ENGINES = ("dev", "clique", "ibft2", "qbft")
CONNECTIONS = 8
GAS_LIMIT = 0x1FFFFFFFFFFFFF
"""Gas limit of the dev network, so that the machine limits the rate and not the block."""
MAX_WAITING = 20_000
"""Maximum number of sent transactions that are not mined. At this number, the client waits."""
MAX_RATE = 14_000
"""Number of transactions that are signed beforehand per second of load."""


@dataclass(slots=True)
class Figures:
    """Measured results of one node."""

    idle: list[float] = field(default_factory=list)
    """Delay of each block in seconds, without load."""
    loaded: list[float] = field(default_factory=list)
    rate: float = 0.0
    """Transactions mined per second."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", nargs="*", default=list(ENGINES), metavar="ENGINE")
    parser.add_argument("--idle", type=int, default=60, help="idle blocks to watch")
    parser.add_argument("--seconds", type=int, default=60, help="length of the load; 0 measures punctuality alone")
    arguments = parser.parse_args()
    bodies = list(signed_bodies(arguments.seconds * MAX_RATE))
    print(f"{'':<27}{'late in ms, idle':<27}{'late in ms, under load':<27}")
    print(f"{'engine':<8}{'tx/s':>8}{'of dev':>8}" + f"   {'median':>8}{'p99':>8}{'max':>8}" * 2 + "   load average")
    rates: dict[str, float] = {}
    for engine in arguments.engine:
        with tempfile.TemporaryDirectory(prefix="poa-") as folder:
            found = measure(engine, Path(folder), bodies, arguments.idle, arguments.seconds)
        rates[engine] = found.rate
        share = f"{found.rate / rates['dev']:.2f}" if rates.get("dev") else "-"
        load = " ".join(f"{value:.1f}" for value in os.getloadavg())
        print(
            f"{engine:<8}{found.rate:>8.0f}{share:>8}   {spread(found.idle)}   {spread(found.loaded)}   {load}",
            flush=True,
        )


def spread(delays: list[float]) -> str:
    """Format median, 99th percentile and maximum in milliseconds."""
    if not delays:
        return f"{'-':>8}{'-':>8}{'-':>8}"
    ordered = sorted(delays)
    figures = statistics.median(ordered), ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))], ordered[-1]
    return "".join(f"{1000 * figure:>8.1f}" for figure in figures)


def measure(engine: str, folder: Path, bodies: list[bytes], idle: int, seconds: int) -> Figures:
    """Measure punctuality first, then throughput. Blocks of the dev network cannot be late, because they follow no
    schedule.
    """
    found = Figures()
    with NodeProcess(folder / "data", *options(engine, folder), "--tx-pool-max-size=100000") as node:
        port = node.ports["json-rpc"]
        if engine != "dev":
            uvloop.run(watch(port, found.idle, idle))
        if seconds:
            uvloop.run(load(port, bodies, seconds, found, engine == "dev"))
    return found


class Client:
    """One connection that sends a request and waits for the answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, port: int) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def post(self, request: bytes) -> bytes:
        """Send a whole HTTP request and return the body of the answer."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        answer = await self._reader.readexactly(length)
        if b'"error"' in answer:
            raise SystemExit(answer.decode())
        return answer

    async def ask(self, method: str, *params: object) -> Any:
        return json.loads(await self.post(request(method, *params)))["result"]

    def close(self) -> None:
        self._writer.close()


async def watch(port: int, late: list[float], count: int | None) -> None:
    """Record the delays of blocks, for `count` blocks or until cancelled."""
    client = await Client.to(port)
    head = int(await client.ask("eth_blockNumber"), 16)
    while count is None or len(late) < count:
        await asyncio.sleep(0.001)
        seen = int(await client.ask("eth_blockNumber"), 16)
        if seen > head:
            now = time.time()
            block = await client.ask("eth_getBlockByNumber", hex(seen), False)
            # skip block 1: the node makes block 1 as soon as it starts, not at the start of a second
            if seen > 1:
                late.append(now - int(block["timestamp"], 16))
            head = seen
    client.close()


async def load(port: int, bodies: list[bytes], seconds: int, found: Figures, is_dev: bool) -> None:
    """Post transactions for some seconds. Each connection sends the next transaction after an answer."""
    todo = iter(bodies)
    sent = 0
    asking = await Client.to(port)
    senders = ["0x" + key.address.hex() for key in DEV_KEYS]

    async def mined() -> int:
        return sum([int(await asking.ask("eth_getTransactionCount", one, "latest"), 16) for one in senders])

    async def post() -> None:
        nonlocal sent
        client = await Client.to(port)
        for body in todo:
            await has_capacity.wait()
            await client.post(body)
            sent += 1

    has_capacity = asyncio.Event()
    has_capacity.set()
    # measure no delays on the development network, because its blocks follow no schedule
    late: list[float] = [] if is_dev else found.loaded
    watching = asyncio.ensure_future(watch(port, late, None))
    began, done = time.perf_counter(), 0
    posting = [asyncio.ensure_future(post()) for _ in range(CONNECTIONS)]
    while (left := began + seconds - time.perf_counter()) > 0:
        await asyncio.sleep(min(left, 0.1))
        done = await mined()
        if sent - done > MAX_WAITING:
            has_capacity.clear()
        else:
            has_capacity.set()
        if all(task.done() for task in posting):
            raise SystemExit(f"{len(bodies)} transactions were not enough: raise MAX_RATE")
    found.rate = done / (time.perf_counter() - began)
    tasks = [watching, *posting]
    for task in tasks:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if not isinstance(outcome, asyncio.CancelledError | None):
            raise outcome


def options(engine: str, folder: Path) -> tuple[str, ...]:
    if engine == "dev":
        return (*MINING, "--block-period=1")
    (folder / "genesis.json").write_text(json.dumps(authority_genesis(engine)))
    (folder / "key").write_text("0x" + DEV_KEYS[0].secret().hex())
    return (f"--genesis-file={folder / 'genesis.json'}", f"--node-private-key-file={folder / 'key'}")


def authority_genesis(engine: str) -> dict[str, Any]:
    """Return a network whose only validator has the first development key, with a period of a second."""
    address = DEV_KEYS[0].address
    if engine == "clique":
        parameters, extra = {"blockperiodseconds": 1}, bytes(32) + address + bytes(65)
    else:
        kind = ExtraDataType.IBFT_EXTRA_DATA if engine == "ibft2" else ExtraDataType.QBFT_EXTRA_DATA
        parameters, extra = {"blockperiodseconds": 1, "requesttimeoutseconds": 4}, extra_data([address], kind)
    return {
        "config": {"chainId": 2018, "londonBlock": 0, "zeroBaseFee": True, engine: parameters},
        "difficulty": "0x1",
        "gasLimit": hex(GAS_LIMIT),
        "baseFeePerGas": "0x0",
        "extraData": "0x" + extra.hex(),
        "alloc": {key.address.hex(): {"balance": hex(10**27)} for key in DEV_KEYS},
    }


def signed_bodies(count: int) -> Iterator[bytes]:
    """Yield HTTP requests with transfers of alternating senders."""
    for number in range(count):
        key = DEV_KEYS[number % len(DEV_KEYS)]
        raw = legacy_transaction(key, number // len(DEV_KEYS), to=(0x10000 + number).to_bytes(20, "big"), value=1)
        yield request("eth_sendRawTransaction", "0x" + raw.hex())


if __name__ == "__main__":
    main()
