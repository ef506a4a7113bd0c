"""Measure how many private payloads a second two enclaves exchange: sealed, durable on both disks, acknowledged.

    python bench/enclave.py [--payloads=4000] [--size=300]

Both enclaves run in this process and thread over a real session (encrypted, in memory). Two nodes with a process each
reach about twice the rate. `senders` is the number of payloads that wait for their acknowledgement at a time.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

import uvloop

from ophion.runtime.thread_pools import ThreadLanes
from ophion.testing.enclaves import EnclaveMember, at_work, met, part


async def exchange(path: Path, payloads: int, size: int, senders: int) -> None:
    """Exchange payloads between two enclaves with new databases, and print the rate."""
    lanes = ThreadLanes(), ThreadLanes()
    a, b = (EnclaveMember(path, number, lanes=lane) for number, lane in zip((1, 2), lanes, strict=True))
    slots = asyncio.Semaphore(senders)

    async def send() -> bytes:
        async with slots:
            return await a.enclave.send(bytes(size), a.key, [b.key])

    async with at_work(a, b):
        meetings = await met(a, b)
        began = time.perf_counter()
        keys = await asyncio.gather(*(send() for _ in range(payloads)))
        sent = time.perf_counter()
        received = await b.enclave.receive_many(keys)
        opened = time.perf_counter()
        assert None not in received
        await part(meetings)
    rate, opening = payloads / (sent - began), payloads / (opened - sent)
    print(f"{senders:>5} senders  {rate:>8,.0f} payloads/s delivered  {opening:>9,.0f} payloads/s opened")
    for lane in lanes:
        lane.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--payloads", type=int, default=4000)
    parser.add_argument("--size", type=int, default=300, help="bytes of a private transaction")
    options = parser.parse_args()
    for senders in (1, 16, 64, 256):
        with tempfile.TemporaryDirectory() as folder:
            count = min(options.payloads, 200 * senders)
            uvloop.run(exchange(Path(folder), count, options.size, senders))


if __name__ == "__main__":
    main()
