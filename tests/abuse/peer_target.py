"""A node that peers attack, with measurements of its service to honest peers, its blocks and its memory."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ophion.native import wire
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from tests.abuse.metered_node import Meter
from tests.abuse.raw_peer import ETH, RawPeer, joined
from tests.abuse.target import Place, answer, ask, expect, opened
from tests.abuse.target import Target as Ports

SERVED_LIMIT_S = 1.0
CUT_OFF_LIMIT_S = 90.0
GET_HEADERS, HEADERS = ETH + 3, ETH + 4


@dataclass
class Target:
    """A node under attack."""

    enode: Enode
    http: Place
    pid: int | None = None
    scale: float = 1.0
    period_s: int = 1
    meter: Meter | None = None
    failures: list[str] = field(default_factory=list)
    served: list[float] = field(default_factory=list)
    """Seconds until each honest peer had its answer."""

    def count(self, full: int, least: int = 4) -> int:
        """Scale a number of items: `full` is the number of a full run."""
        return max(least, int(full * self.scale))

    def memory_mb(self) -> float:
        if self.pid is None:
            return 0.0
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


# --- honest peers --------------------------------------------------------------------------------


async def served(target: Target) -> float:
    """Connect as an honest peer. Returns the seconds until the peer has the requested header."""
    began = time.perf_counter()
    async with joined(target.enode) as peer:
        await peer.send(GET_HEADERS, rlp.encode([7, [0, 1, 0, 0]]))
        answer = rlp.decode_list(await peer.expect(HEADERS))
        expect(answer[0] == b"\x07" and len(answer[1]) == 1, "an honest peer got no header")
    return time.perf_counter() - began


async def probe(target: Target, when: str) -> None:
    """Record whether honest peers have a problem now."""
    try:
        times = [await served(target) for _ in range(3)]
    except (OSError, EOFError, TimeoutError) as error:
        target.failures.append(f"{when}: an honest peer was not served: {type(error).__name__} {error}")
        return
    target.served += times
    middle = statistics.median(times)
    if middle > SERVED_LIMIT_S:
        target.failures.append(f"{when}: an honest peer waited {middle:.2f} s")


async def head(target: Target) -> int:
    """Return the number of the last block."""
    answer = await ask(Ports(target.http, target.http), "eth_blockNumber")
    return int(answer["result"], 16)


async def is_ready(target: Target) -> bool:
    """Return whether the node reports readiness to a load balancer."""
    async with opened(target.http) as (reader, writer):
        writer.write(b"GET /readiness?minPeers=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return (await answer(reader))[0] == 200


async def longest_gap(target: Target, since: int) -> int:
    """Return the longest gap between blocks, computed from their timestamps. This script may be too busy to measure the
    gap.
    """
    view = Ports(target.http, target.http)
    times = []
    for number in range(since, await head(target) + 1):
        block = await ask(view, "eth_getBlockByNumber", hex(number), False)
        times.append(int(block["result"]["timestamp"], 16))
    return max((later - earlier for earlier, later in pairwise(times)), default=0)


# --- attackers -----------------------------------------------------------------------------------


async def peer_is_cut_off(peer: RawPeer) -> bool:
    """Return whether the node disconnects within a minute, the time limit of an incomplete message."""
    with contextlib.suppress(ConnectionError, wire.WireError):
        async with asyncio.timeout(CUT_OFF_LIMIT_S):
            await peer.is_cut_off()
    return True


async def in_turns(count: int, one: Callable[[int], Awaitable[None]], width: int = 40) -> None:
    """Open many connections, a few at a time. A refused connection counts as disconnected."""
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await one(number)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(width):
            tasks.create_task(worker())


def raise_file_limit() -> None:
    """Raise the limit on open files for thousands of connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
