"""Attacks on TLS handshakes. The honest client makes new handshakes all the time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from collections.abc import AsyncIterator

from tests.abuse.target import ANSWER_LIMIT_S, Place, Streams, Target, answer, call, careless, expect, opened, post

HOLD_S = 3.0
WIDTH = 50
"""Number of concurrent attackers. A handshake takes a millisecond, and handshakes run in order of arrival. So an honest
client waits this number of milliseconds.
"""


def hello() -> bytes:
    """Return the first message of an honest TLS client."""
    arriving, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = careless().wrap_bio(arriving, leaving)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return leaving.read()


def bare(place: Place) -> contextlib.AbstractAsyncContextManager[Streams]:
    """Open a connection without TLS to a TLS port."""
    return opened(place._replace(is_encrypted=False))


@contextlib.asynccontextmanager
async def crowd(target: Target, count: int) -> AsyncIterator[list[Streams]]:
    """Open many connections to both services. Connections beyond the limit are refused."""
    async with contextlib.AsyncExitStack() as held:
        found = []
        for number in range(count):
            with contextlib.suppress(OSError):
                found.append(await held.enter_async_context(bare(target.ws if number % 4 == 3 else target.http)))
        yield found


async def silent_handshakes(target: Target) -> None:
    """Attack with 2,000 connections that send nothing instead of a handshake."""
    async with crowd(target, target.count(2000, 20)):
        await asyncio.sleep(HOLD_S)


async def half_handshakes(target: Target) -> None:
    """Attack with 2,000 connections that send a part or all of their first message, and then nothing more."""
    first = hello()
    async with crowd(target, target.count(2000, 20)) as streams:
        for number, (_, writer) in enumerate(streams):
            writer.write(first[: (3, 60, len(first) - 1, len(first))[number % 4]])
        await asyncio.sleep(HOLD_S)
        status, _ = await post(target.http, call("eth_blockNumber"))
        expect(status == 200, f"status {status} for an honest newcomer")


async def slow_handshakes(target: Target) -> None:
    """Attack with 500 connections whose first message arrives byte by byte."""
    first = hello()
    async with crowd(target, target.count(500, 10)) as streams:
        for place in range(target.count(200, 40)):
            for _, writer in streams:
                if not writer.is_closing():
                    writer.write(first[place : place + 1])
            await asyncio.sleep(0.02)


async def no_handshakes(target: Target) -> None:
    """Attack with 2,000 connections that send HTTP, noise, or invalid TLS records. The node must close each
    connection.
    """
    records = (
        b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\xff\xff" + os.urandom(20_000),
        b"\x16\x03\x01\x00\x00" * 5000,
        b"\x17\x03\x03\x40\x00" + bytes(16_384),
        hello() + b"\x15\x03\x03\x00\x02\x01\x00" * 2000,
        hello() + os.urandom(5000),
        os.urandom(3000),
    )

    async def one(number: int) -> None:
        with contextlib.suppress(OSError):
            async with bare(target.ws if number % 4 == 3 else target.http) as (reader, writer):
                writer.write(records[number % len(records)])
                async with asyncio.timeout(ANSWER_LIMIT_S):
                    while await reader.read(1 << 16):
                        pass

    todo = iter(range(target.count(2000, 28)))

    async def some() -> None:
        for number in todo:
            await one(number)

    await asyncio.gather(*(some() for _ in range(WIDTH)))


async def many_handshakes(target: Target) -> None:
    """Attack with 2,000 complete handshakes by 50 clients, each with a request."""
    todo = iter(range(target.count(2000, 40)))

    async def newcomers() -> None:
        for _ in todo:
            with contextlib.suppress(OSError):
                status, _ = await post(target.http, call("eth_blockNumber"))
                expect(status in (200, 503, 0), f"status {status} for an honest newcomer")

    await asyncio.gather(*(newcomers() for _ in range(WIDTH)))


async def unread_secrets(target: Target) -> None:
    """Attack with 500 encrypted connections that request large answers and do not read."""
    asked = b"[" + b",".join([call("eth_getBlockByNumber", "0x0", True)] * 1000) + b"]"
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(asked)

    async def one() -> None:
        with contextlib.suppress(OSError):
            async with opened(target.http) as (_, writer):
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                for _ in range(8):
                    writer.write(head + asked)
                await asyncio.sleep(HOLD_S)

    await asyncio.gather(*(one() for _ in range(target.count(500, 10))))
    async with opened(target.http) as (reader, writer):
        writer.write(head + asked)
        status, _ = await answer(reader)
        expect(status in (200, 503, 0), f"status {status} after it")


ATTACKS = (silent_handshakes, half_handshakes, slow_handshakes, no_handshakes, many_handshakes, unread_secrets)
