"""Measure the time from send to receipt: python bench/latency.py [ibft2 qbft] [--period-ms 200] [--clients 8]

Starts four validators as processes on this machine. Each client has an account and a keep-alive connection to one of
the validators. It sends a transfer, polls its receipt, waits a random time of up to one block period, and repeats.
Prints one JSON line per network: median and percentiles of the time from send to receipt in milliseconds, the gap
between blocks, processor time of all nodes per second, and whether all nodes have the same chain.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.native.crypto import PrivateKey
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.signing import legacy_transaction

POLL_S = 0.005


class Client:
    """A JSON-RPC client on one keep-alive connection."""

    def __init__(self, port: int, key: PrivateKey) -> None:
        self._port = port
        self._key = key
        self._nonce = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, method: str, *params: Any) -> Any:
        """Call a method and return its result."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        head = (
            "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        writer.write(head.encode() + body)
        received = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(received.partition(b"content-length:")[2].split(b"\r\n")[0])
        answer = json.loads(await reader.readexactly(length))
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    async def transfer(self) -> tuple[float, int]:
        """Send a transfer. Returns the seconds until its receipt was available, and its block."""
        raw = legacy_transaction(
            self._key, self._nonce, gas_price=0, value=0, to=b"\0" * 18 + b"\xde\xad", chain_id=CHAIN_ID
        )
        self._nonce += 1
        began = time.perf_counter()
        tx_hash = await self.call("eth_sendRawTransaction", "0x" + raw.hex())
        while (receipt := await self.call("eth_getTransactionReceipt", tx_hash)) is None:  # noqa: ASYNC110  # most libraries poll too
            await asyncio.sleep(POLL_S)
        return time.perf_counter() - began, int(receipt["blockNumber"], 16)


async def measure(network: TestNetwork, clients: int, seconds: float, period_s: float) -> list[float]:
    """Return the latencies of all transfers in seconds."""
    found: list[float] = []
    until = time.perf_counter() + seconds
    rng = random.Random(1)

    async def run(index: int) -> None:
        node = network.nodes[index % len(network.nodes)]
        client = Client(node.ports["json-rpc"], PrivateKey((0xBEEF00 + index).to_bytes(32, "big")))
        while time.perf_counter() < until:
            await asyncio.sleep(rng.random() * period_s)
            found.append((await client.transfer())[0])

    async with asyncio.TaskGroup() as tasks:
        for index in range(clients):
            tasks.create_task(run(index))
    return found


def later_rounds(network: TestNetwork, first: int) -> int:
    """Return the number of blocks after `first` that were decided in round 1 or later."""
    protocol = Qbft() if network.engine == "qbft" else Ibft2()
    extras = (
        network.nodes[0].rpc("eth_getBlockByNumber", hex(number), False)["extraData"]
        for number in range(first + 1, network.height(0) + 1)
    )
    return sum(protocol.decode_extra(bytes.fromhex(extra[2:])).round > 0 for extra in extras)


def percentile(values: list[float], share: float) -> float:
    """Return a percentile of `values`, which are in seconds, in milliseconds."""
    return round(sorted(values)[min(len(values) - 1, int(len(values) * share))] * 1e3, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("engines", nargs="*", default=["ibft2", "qbft"])
    parser.add_argument("--period-ms", type=int, default=200)
    parser.add_argument("--empty-period", type=int, default=0, help="seconds between empty blocks (QBFT)")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--validators", type=int, default=4)
    chosen = parser.parse_args()
    options = {"blockperiodmilliseconds": chosen.period_ms, "emptyblockperiodseconds": chosen.empty_period}
    for engine in chosen.engines:
        with (
            tempfile.TemporaryDirectory(prefix="ophion-latency-") as path,
            TestNetwork(Path(path), engine, chosen.validators, bft_options=options) as network,
        ):
            network.wait(lambda: min(network.heights()) >= 1, 60, "the first block")
            time.sleep(2)
            first, used, began = network.height(0), network.processor_s(), time.perf_counter()
            found = asyncio.run(measure(network, chosen.clients, chosen.seconds, chosen.period_ms / 1e3))
            elapsed, blocks = time.perf_counter() - began, network.height(0) - first
            line = {
                "engine": engine,
                "period_ms": chosen.period_ms,
                "transfers": len(found),
                "median_ms": percentile(found, 0.5),
                "p90_ms": percentile(found, 0.9),
                "p99_ms": percentile(found, 0.99),
                "worst_ms": percentile(found, 1.0),
                "mean_gap_ms": round(1e3 * elapsed / max(1, blocks), 1),
                "blocks": blocks,
                "later_rounds": later_rounds(network, first),
                "cpu_share_of_all": round((network.processor_s() - used) / elapsed, 2),
                "same_chain": network.agrees(since=max(0, network.height(0) - 30)),
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
