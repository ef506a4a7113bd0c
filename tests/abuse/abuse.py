"""Everything hostile that a client can do to a node, and whether honest clients notice.

    python tests/abuse/abuse.py --http=127.0.0.1:8545 --ws=127.0.0.1:8546 [--pid=PID] [--scale=1] [--only=NAME ...]

Runs each attack against a running node. After (and where it lasts, during) each one an honest client connects anew and
asks for the block number: that must be answered within 100 ms (the middle of five; the slowest of the first ones is
shown too). With the process id of a node on this machine the growth of its memory is checked. Exits with 1 when
something was not answered or cut off as it should be. `--scale=0.02` is what the test suite runs.

The node needs ETH on both services; with `--network=dev` transactions give the subscribers something not to read.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROBE_LIMIT_S = 0.1
MEMORY_LIMIT_MB = 400
ANSWER_LIMIT_S = 40.0
HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
ENDLESS = "0x5b600056"
"""Code that jumps to its own beginning."""


class Unanswered(Exception):
    """An attack was neither answered nor cut off."""


@dataclass
class Target:
    """A node under attack."""

    http: tuple[str, int]
    ws: tuple[str, int]
    pid: int | None = None
    scale: float = 1.0
    failures: list[str] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    """Seconds of the first honest requests during and after an attack."""

    def count(self, full: int, least: int = 4) -> int:
        """How many of something, at the scale that was asked for."""
        return max(least, int(full * self.scale))

    def memory_mb(self) -> float:
        if self.pid is None:
            return 0.0
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


@contextlib.asynccontextmanager
async def opened(place: tuple[str, int]) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.wait_for(asyncio.open_connection(*place, limit=2**26), ANSWER_LIMIT_S)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """Status and body of the next response; status 0 when the connection was closed instead."""
    try:
        async with asyncio.timeout(ANSWER_LIMIT_S):
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split()[1])
            lower = head.lower()
            if b"content-length: " not in lower:
                return status, await reader.read()
            return status, await reader.readexactly(int(lower.partition(b"content-length: ")[2].partition(b"\r")[0]))
    except (asyncio.IncompleteReadError, ConnectionError):
        return 0, b""
    except TimeoutError:
        raise Unanswered("nothing came back") from None


async def post(target: Target, body: bytes) -> tuple[int, bytes]:
    async with opened(target.http) as (reader, writer):
        writer.write(HEAD % len(body) + body)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        return await answer(reader)


def call(name: str, *params: Any, id: int = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": name, "params": params}).encode()


async def ask(target: Target, name: str, *params: Any) -> Any:
    status, body = await post(target, call(name, *params))
    return json.loads(body) if status else None


def code(body: bytes) -> int | None:
    found: int | None = json.loads(body).get("error", {}).get("code")
    return found


def expect(truth: bool, what: str) -> None:
    if not truth:
        raise Unanswered(what)


async def probe(target: Target) -> float:
    """Seconds until an honest newcomer has its answer."""
    began = time.perf_counter()
    status, body = await post(target, call("eth_blockNumber"))
    expect(status == 200 and b"result" in body, f"an honest request got status {status}")
    return time.perf_counter() - began


# --- attacks -------------------------------------------------------------------------------------


async def idle_connections(target: Target) -> None:
    """5,000 connections that say nothing."""
    async with contextlib.AsyncExitStack() as held:
        for _ in range(target.count(5000)):
            await held.enter_async_context(opened(target.http))
        for _ in range(3):
            target.failures += await probed(target, "while idle connections are open")


async def silent_subscribers(target: Target) -> None:
    """200 WebSocket clients that subscribe to everything and never read."""
    async with contextlib.AsyncExitStack() as held:
        for _ in range(target.count(200, 8)):
            reader, writer = await held.enter_async_context(websocket(target))
            # a small window: what is not read stays with the node
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            for kind in ("newHeads", "newPendingTransactions"):
                writer.write(frame(call("eth_subscribe", kind, {"includeTransactions": True})))
            await writer.drain()
            del reader
        await make_blocks(target, target.count(40, 10))
        target.failures += await probed(target, "while nobody reads notifications")


async def huge_body(target: Target) -> None:
    """A body of 100 MB."""
    async with opened(target.http) as (reader, writer):
        size = 100_000_000
        writer.write(HEAD % size)
        with contextlib.suppress(ConnectionError):
            for _ in range(target.count(100, 2)):
                writer.write(b" " * 1_000_000)
                await writer.drain()
        status, _ = await answer(reader)
        expect(status in (413, 0), f"status {status} for 100 MB")


async def huge_batch(target: Target) -> None:
    """A batch of 100,000 requests."""
    member = b'{"id":1,"method":"eth_blockNumber"}'
    status, body = await post(target, b"[" + b",".join([member] * target.count(100_000, 2000)) + b"]")
    expect(status == 200 and code(body) == -32005, f"status {status}: {body[:100]!r}")


async def nested(target: Target) -> None:
    """JSON that is nested more deeply than any parser likes."""
    depth = target.count(1_000_000, 5000)
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        whole = opening * depth + b"1" + closing * depth
        for body in (whole, b'{"id":1.5,"method":"eth_call","params":%b}' % whole[:16_000_000]):
            status, _ = await post(target, body)
            expect(status in (400, 413), f"status {status} for nested JSON")
    for depth in (900, 1000, 1020, 1024):
        inner = b"[" * depth + b"]" * depth
        status, _ = await post(target, b'{"id":1.5,"method":"eth_call","params":%b}' % inner)
        expect(status in (200, 400), f"status {status} for {depth} levels")


async def endless_calls(target: Target) -> None:
    """`eth_call` in an endless loop on 8 connections."""
    calls = [asyncio.create_task(post(target, call("eth_call", {"data": ENDLESS}, "latest"))) for _ in range(8)]
    await asyncio.sleep(0.2)
    target.failures += await probed(target, "while calls loop")
    for status, body in await asyncio.gather(*calls):
        expect(status in (200, 408) and "error" in json.loads(body), f"status {status}: {body[:100]!r}")


async def abandoned_calls(target: Target) -> None:
    """Clients that ask for the heaviest things and hang up."""
    for _ in range(target.count(500, 20)):
        async with opened(target.http) as (_, writer):
            body = call("eth_call", {"data": ENDLESS}, "latest")
            writer.write(HEAD % len(body) + body)
            await writer.drain()


async def endless_ranges(target: Target) -> None:
    """Ranges of 2^63 blocks."""
    far, near = hex(2**63 - 1), "0x0"
    for name, *params in (
        ("eth_getLogs", {"fromBlock": near, "toBlock": far}),
        ("eth_getLogs", {"fromBlock": near, "toBlock": "latest"}),
        ("eth_feeHistory", far, "latest", []),
        ("eth_getBlockByNumber", far, True),
        ("trace_filter", {"fromBlock": near, "toBlock": far}),
    ):
        expect(await ask(target, name, *params) is not None, f"{name} was not answered")


async def invalid_text(target: Target) -> None:
    """Bytes that are no UTF-8."""
    status, body = await post(target, b'{"id":1,"method":"\xff\xfe","params":[]}')
    expect(status == 400 and code(body) == -32700, f"status {status}")
    async with websocket(target) as (reader, writer):
        writer.write(frame(b'{"method":"\xff\xfe"}'))
        data = await asyncio.wait_for(reader.read(4), ANSWER_LIMIT_S)
        expect(data[:1] == b"\x88" and data[2:4] == (1007).to_bytes(2, "big"), f"{data!r} instead of a close frame")


async def header_bombs(target: Target) -> None:
    """Heads without end: many headers, one long header, a long path."""
    for place in (target.http, target.ws):
        for piece in (b"X-%d: y\r\n", b"y" * 4096, b"/%d" * 100):
            async with opened(place) as (reader, writer):
                start = b"GET /" if piece.startswith(b"/") else b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "
                writer.write(start)
                with contextlib.suppress(ConnectionError):
                    for number in range(target.count(20_000, 5000)):
                        writer.write(piece % number if piece == b"X-%d: y\r\n" else piece)
                        if number % 64 == 0:
                            await writer.drain()
                status, _ = await answer(reader)
                expect(status in (431, 400, 0), f"status {status} for a head without end")


async def half_open(target: Target) -> None:
    """Handshakes that begin and do not go on."""
    async with contextlib.AsyncExitStack() as held:
        for number in range(target.count(2000, 20)):
            place = target.ws if number % 2 else target.http
            _, writer = await held.enter_async_context(opened(place))
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: webso")
        target.failures += await probed(target, "while handshakes are half open")
        async with websocket(target) as (reader, writer):
            writer.write(frame(call("eth_blockNumber")))
            expect(bool(await asyncio.wait_for(reader.read(2), ANSWER_LIMIT_S)), "no answer over WebSocket")


async def many_filters(target: Target) -> None:
    """1,000,000 filters."""
    member = b'{"id":1,"method":"eth_newBlockFilter","params":[]}'
    batch = b"[" + b",".join([member] * 1000) + b"]"
    refused = 0
    async with opened(target.http) as (reader, writer):
        for _ in range(target.count(1000, 12)):
            writer.write(HEAD % len(batch) + batch)
            status, body = await answer(reader)
            expect(status == 200, f"status {status}")
            refused += body.count(b"-32005")
    expect(refused > 0, "filters without limit")


async def slow_requests(target: Target) -> None:
    """Requests that come byte by byte, and answers that nobody takes."""
    async with contextlib.AsyncExitStack() as held:
        for _ in range(target.count(200, 10)):
            reader, writer = await held.enter_async_context(opened(target.http))
            writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n{")
            del reader
        big = b"[" + b",".join([call("eth_getBlockByNumber", "0x0", True)] * 1000) + b"]"
        for _ in range(target.count(50, 4)):
            _, writer = await held.enter_async_context(opened(target.http))
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            for _ in range(40):
                writer.write(HEAD % len(big) + big)
        await asyncio.sleep(0.5)
        target.failures += await probed(target, "while nobody reads answers")


ATTACKS: tuple[Callable[[Target], Awaitable[None]], ...] = (
    idle_connections,
    silent_subscribers,
    huge_body,
    huge_batch,
    nested,
    endless_calls,
    abandoned_calls,
    endless_ranges,
    invalid_text,
    header_bombs,
    half_open,
    many_filters,
    slow_requests,
)

# --- WebSocket and transactions ------------------------------------------------------------------


@contextlib.asynccontextmanager
async def websocket(target: Target) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with opened(target.ws) as (reader, writer):
        key = base64.b64encode(bytes(16)).decode()
        writer.write(
            (
                "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
            ).encode()
        )
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), ANSWER_LIMIT_S)
        expect(b" 101 " in head, f"no WebSocket: {head[:60]!r}")
        yield reader, writer


def frame(payload: bytes) -> bytes:
    """A masked text frame; the mask of zeros leaves the payload as it is."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return b"\x81" + length + bytes(4) + payload


async def make_blocks(target: Target, count: int) -> None:
    """Large transactions on a development chain; elsewhere nothing happens."""
    chain = await ask(target, "eth_chainId")
    if chain["result"] != "0x7e2":
        return
    from ophion.testing.signing import DEV_KEYS, legacy_transaction

    key = DEV_KEYS[2]
    first = int((await ask(target, "eth_getTransactionCount", "0x" + key.address.hex(), "pending"))["result"], 16)
    for nonce in range(first, first + count):
        raw = legacy_transaction(key, nonce, gas=3_000_000, data=b"\x01" * 60_000)
        await ask(target, "eth_sendRawTransaction", "0x" + raw.hex())


# --- running -------------------------------------------------------------------------------------


async def probed(target: Target, when: str) -> list[str]:
    """What is wrong with honest requests now.

    The middle of five decides, since the machine may be busy with other things; the first is shown beside it.
    """
    for _ in range(3):
        await asyncio.sleep(0)  # what this script still has to do with its own connections is not the node's time
    times = [await probe(target) for _ in range(5)]
    target.firsts.append(times[0])
    middle = statistics.median(times)
    return [] if middle <= PROBE_LIMIT_S else [f"{when}: an honest request took {middle * 1000:.0f} ms"]


async def run(target: Target, names: list[str]) -> list[str]:
    """Every attack in turn; the failures."""
    await probe(target)
    before = target.memory_mb()
    for attack in ATTACKS:
        name = attack.__name__
        if names and name not in names:
            continue
        found, target.failures, target.firsts = target.failures, [], []
        began = time.perf_counter()
        try:
            await attack(target)
            target.failures += await probed(target, "afterwards")
        except (Unanswered, OSError, TimeoutError) as error:
            target.failures.append(f"{type(error).__name__}: {error}")
        grown = target.memory_mb() - before
        if grown > MEMORY_LIMIT_MB:
            target.failures.append(f"memory grew by {grown:.0f} MB")
        took = time.perf_counter() - began
        verdict = "; ".join(target.failures) or "ok"
        first = max(target.firsts, default=float("nan")) * 1000
        print(
            f"{name:20} {took:6.1f} s   memory {grown:+6.0f} MB   first answer {first:4.0f} ms   {verdict}", flush=True
        )
        target.failures = found + [f"{name}: {failure}" for failure in target.failures]
    return target.failures


def place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host or "127.0.0.1", int(port)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--http", type=place, default=("127.0.0.1", 8545))
    parser.add_argument("--ws", type=place, default=("127.0.0.1", 8546))
    parser.add_argument("--pid", type=int)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", action="append", default=[])
    chosen = parser.parse_args()
    return 1 if asyncio.run(run(Target(chosen.http, chosen.ws, chosen.pid, chosen.scale), chosen.only)) else 0


if __name__ == "__main__":
    sys.exit(main())
