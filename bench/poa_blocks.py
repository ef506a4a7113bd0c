"""How punctual proof-of-authority nodes are, and how many transactions they take beside the dev network.

    python bench/poa_blocks.py [--transactions 30000] [--idle 20] [--rounds 2] [ENGINE ...]

Each ENGINE (dev, clique, ibft2, qbft) is a node of one with a period of a second. Idle, a block is late by the time
between its timestamp and the moment a client sees it. Under load, signed transfers are posted over eight connections as
fast as they are answered; the rate counts from the first one sent to the last one mined. Engines take turns and the
best round of each counts, so that other work on the machine weighs on all of them alike.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

from ophion.cli.rlp import ExtraDataType, extra_data
from ophion.testing.process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction

ENGINES = ("dev", "clique", "ibft2", "qbft")
CONNECTIONS = 8
GAS_LIMIT = 0x1FFFFFFFFFFFFF
"""As on the dev network: the machine is the limit, not the block."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", nargs="*", default=list(ENGINES), metavar="ENGINE")
    parser.add_argument("--transactions", type=int, default=30_000, help="0 measures punctuality alone")
    parser.add_argument("--idle", type=int, default=20, help="idle blocks to watch")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    bodies = list(signed_bodies(arguments.transactions))
    rates: dict[str, float] = {}
    late: dict[str, list[float]] = {engine: [] for engine in arguments.engine}
    for _ in range(arguments.rounds):
        for engine in arguments.engine:
            with tempfile.TemporaryDirectory(prefix="poa-") as folder:
                rate, delays = measure(engine, Path(folder), bodies, arguments.idle)
            rates[engine] = max(rate, rates.get(engine, 0.0))
            late[engine] += delays
    print(f"{'engine':<8}{'tx/s':>9}{'of dev':>9}{'late ms: median':>18}{'worst':>8}")
    for engine in arguments.engine:
        share = f"{rates[engine] / rates['dev']:.2f}" if rates.get("dev") else ""
        delays = late[engine]
        middle = f"{1000 * statistics.median(delays):.1f}" if delays else "-"
        worst = f"{1000 * max(delays):.1f}" if delays else "-"
        print(f"{engine:<8}{rates[engine]:>9.0f}{share:>9}{middle:>18}{worst:>8}")


def measure(engine: str, folder: Path, bodies: list[bytes], idle: int) -> tuple[float, list[float]]:
    """Transactions per second, and how late each idle block was; the dev network has no schedule to be late on."""
    with NodeProcess(folder / "data", *options(engine, folder), "--tx-pool-max-size=100000") as node:
        delays = [] if engine == "dev" else idle_delays(node, idle)
        if not bodies:
            return 0.0, delays
        port = node.ports["json-rpc"]
        senders = ["0x" + key.address.hex() for key in DEV_KEYS]
        began = time.perf_counter()
        uvloop.run(post_all(port, bodies))
        while sum(int(node.rpc("eth_getTransactionCount", one, "latest"), 16) for one in senders) < len(bodies):
            time.sleep(0.01)
            if time.perf_counter() - began > 120:
                raise SystemExit(f"{engine}: transactions were not mined\n{node.output()[-2000:]}")
        return len(bodies) / (time.perf_counter() - began), delays


def idle_delays(node: NodeProcess, count: int) -> list[float]:
    found: list[float] = []
    head = int(node.rpc("eth_blockNumber"), 16)
    while len(found) < count:
        seen = int(node.rpc("eth_blockNumber"), 16)
        if seen > head:
            now = time.time()
            block = node.rpc("eth_getBlockByNumber", hex(seen), False)
            # the first block is made at once, wherever in its second that is
            if seen > 1:
                found.append(now - int(block["timestamp"], 16))
            head = seen
        time.sleep(0.0005)
    return found


def options(engine: str, folder: Path) -> tuple[str, ...]:
    if engine == "dev":
        return (*MINING, "--block-period=1")
    (folder / "genesis.json").write_text(json.dumps(authority_genesis(engine)))
    (folder / "key").write_text("0x" + DEV_KEYS[0].secret().hex())
    return (f"--genesis-file={folder / 'genesis.json'}", f"--node-private-key-file={folder / 'key'}")


def authority_genesis(engine: str) -> dict[str, Any]:
    """A network whose only member has the first development key, with a period of a second."""
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
    """HTTP requests with transfers, the senders in turn."""
    for number in range(count):
        key = DEV_KEYS[number % len(DEV_KEYS)]
        raw = legacy_transaction(key, number // len(DEV_KEYS), to=(0x10000 + number).to_bytes(20, "big"), value=1)
        body = b'{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x%s"]}' % raw.hex().encode()
        yield (
            b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (len(body), body)
        )


async def post_all(port: int, bodies: list[bytes]) -> None:
    """Post every body once; each connection sends the next one when it is answered."""
    todo = iter(bodies)

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for body in todo:
            writer.write(body)
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
            answer = await reader.readexactly(length)
            if b'"error"' in answer:
                raise SystemExit(answer.decode())
        writer.close()

    await asyncio.gather(*(client() for _ in range(CONNECTIONS)))


if __name__ == "__main__":
    main()
