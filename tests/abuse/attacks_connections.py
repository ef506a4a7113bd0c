"""Attacks with connections: many, idle, half open, slow, and invalid request heads."""

from __future__ import annotations

import asyncio
import contextlib

from tests.abuse.target import (
    ANSWER_LIMIT_S,
    Place,
    Target,
    answer,
    call,
    expect,
    frame,
    handshake,
    make_blocks,
    opened,
    post,
    request,
    send,
    websocket,
)


async def idle_connections(target: Target) -> None:
    """Attack with 5,000 connections that send nothing."""
    async with contextlib.AsyncExitStack() as held:
        for _ in range(target.count(5000)):
            await held.enter_async_context(opened(target.http))
        await asyncio.sleep(1)


async def new_connections(target: Target) -> None:
    """Attack with 10,000 connections at the same time, each with a request."""
    todo = iter(range(target.count(10_000)))
    body = call("eth_blockNumber")

    async def newcomers() -> None:
        for _ in todo:
            with contextlib.suppress(OSError):
                await post(target.http, body)

    await asyncio.gather(*(newcomers() for _ in range(target.count(2000))))


async def silent_subscribers(target: Target) -> None:
    """Attack with 200 WebSocket clients that subscribe to all topics and never read."""
    async with contextlib.AsyncExitStack() as held:
        for _ in range(target.count(200, 8)):
            reader, writer = await held.enter_async_context(websocket(target))
            # stop reading, so that the node must hold the unread bytes of its answers
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            for kind in ("newHeads", "newPendingTransactions"):
                writer.write(frame(call("eth_subscribe", kind, {"includeTransactions": True})))
            await writer.drain()
            del reader
        await make_blocks(target, target.count(40, 10))


async def half_open(target: Target) -> None:
    """Attack with 2,000 handshakes that are never completed."""
    async with contextlib.AsyncExitStack() as held:
        for number in range(target.count(2000, 20)):
            place = target.ws if number % 2 else target.http
            _, writer = await held.enter_async_context(opened(place))
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: webso")
        async with websocket(target) as (reader, writer):
            writer.write(frame(call("eth_blockNumber")))
            expect(bool(await asyncio.wait_for(reader.read(2), ANSWER_LIMIT_S)), "no answer over WebSocket")


async def slow_requests(target: Target) -> None:
    """Attack with requests that arrive byte by byte, and clients that do not read their answers."""
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
                writer.write(request(big, path=target.http.path))
        await asyncio.sleep(2)


async def unread_answers(target: Target) -> None:
    """Attack with 4,000 connections that request a large block repeatedly and do not read."""
    await make_blocks(target, 4)
    asked = request(call("eth_getBlockByNumber", "latest", True), path=target.http.path) * 64
    async with contextlib.AsyncExitStack() as held:
        for _ in range(target.count(4000)):
            with contextlib.suppress(OSError):
                _, writer = await held.enter_async_context(opened(target.http))
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(asked)
        await asyncio.sleep(3)


async def header_bombs(target: Target) -> None:
    """Attack with HTTP request heads that are too long: many headers, one long header, a long path."""
    for place in (target.http, target.ws):
        for piece in (b"X-%d: y\r\n", b"y" * 4096, b"/%d" * 100):
            async with opened(place) as (reader, writer):
                start = b"GET /" if piece.startswith(b"/") else b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "
                writer.write(start)
                with contextlib.suppress(ConnectionError):
                    for number in range(target.count(20_000, 10_000)):
                        writer.write(piece % number if piece == b"X-%d: y\r\n" else piece)
                        if number % 64 == 0:
                            await writer.drain()
                status, _ = await answer(reader)
                expect(status in (431, 400, 0), f"status {status} for a head without end")


async def short_headers(target: Target) -> None:
    """Attack with 1,000 connections whose request heads have 16,000 headers of two letters."""
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\n" + b"a:b\r\n" * 12_000

    async def once() -> None:
        with contextlib.suppress(OSError):
            async with opened(target.http) as (reader, writer):
                await send(writer, head + b"\r\n")
                await answer(reader)

    await asyncio.gather(*(once() for _ in range(target.count(1000))))


async def wide_heads(target: Target) -> None:
    """Attack with 4,000 connections whose request heads have thousands of header names or one long line. The
    connections stay open.
    """
    first, rest = b"POST / HTTP/1.1\r\nHost: localhost\r\n", b"Content-Length: 2\r\n\r\n{}"
    names = b"".join(b"%x:\r\n" % number for number in range(9000))
    line, commas = b"X: " + b"y" * 60_000 + b"\r\n", b"," * 60_000 + b"\r\n"
    heads = (
        (target.http, first + names),
        (target.http, first + names + rest),
        (target.http, first + line),
        (target.http, first + line + rest),
        (target.http, first + b"Accept-Encoding: gzip" + commas + rest),
        (target.ws, handshake(names, target.ws.path)[:-2]),
        (target.ws, handshake(names, target.ws.path)),
        (target.ws, handshake(line, target.ws.path)[:-2]),
        (target.ws, handshake(line, target.ws.path)),
        (target.ws, handshake(b"Connection: " + commas, target.ws.path)),
    )

    async def one(number: int) -> None:
        place, data = heads[number % len(heads)]
        with contextlib.suppress(OSError):
            async with opened(place) as (_, writer):
                await send(writer, data)
                await asyncio.sleep(3 + 4 * target.scale)

    await asyncio.gather(*(one(number) for number in range(target.count(4000))))


async def pipelined_upgrades(target: Target) -> None:
    """Attack with thousands of pipelined request heads that request another protocol."""
    head = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    # a node answers this GET with status 201, and a gateway answers with its page and status 200
    plain = 201 if target.http.path == b"/" else 200
    for _ in range(3):
        async with opened(target.http) as (reader, writer):
            sending = asyncio.create_task(send(writer, head * 5000))
            status, _ = await answer(reader)
            expect(status in (plain, 400, 0), f"status {status} for an upgrade")
            sending.cancel()


async def pipelined_pages(target: Target) -> None:
    """Attack with thousands of pipelined short request heads, each for a whole page. Attack also with request heads of
    thousands of fields.
    """
    line = b"GET %b HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n"
    wanted = [
        (target.http, line % b"/" * 2000),
        (target.http, line % (b"/readiness?" + b"a&" * 30_000) * 20),
        (target.graphql, line % b"/graphql?query={block{number}}" * 2000),
        (target.graphql, line % (b"/graphql?" + b"a&" * 30_000) * 20),
        (target.metrics, line % b"/metrics" * 2000),
        (target.metrics, line % (b"/metrics?" + b"name[]=a&" * 7000) * 20),
    ]

    async def one(place: Place, data: bytes) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with opened(place) as (reader, writer), asyncio.timeout(10 * target.scale):
                sending = asyncio.create_task(send(writer, data))
                while await reader.read(1 << 16):
                    pass
                sending.cancel()

    clients = target.count(10, 1)
    await asyncio.gather(*(one(place, data) for place, data in wanted if place is not None for _ in range(clients)))


async def odd_heads(target: Target) -> None:
    """Attack with HTTP request heads that different servers could read differently."""
    body = call("eth_blockNumber")
    length = b"Content-Length: %d" % len(body)
    heads = {
        b"Content-Length: " + b"9" * 5000: (400, 413),
        b"Content-Length: " + b"0" * 5000 + b"%d" % len(body): (200, 400),
        length: (200,),
        length + b"\r\nHost: localhost": (400,),
        length + b"\r\nContent-Type: a\r\nContent-Type: b": (400,),
        length + b"\r\nAuthorization: a\r\nAuthorization: b": (400,),
        length + b"\r\n" + length: (400,),
        length + b"\r\nTransfer-Encoding: chunked": (400,),
    }
    for lines, allowed in heads.items():
        async with opened(target.http) as (reader, writer):
            await send(writer, b"POST / HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n\r\n" + body)
            status, _ = await answer(reader)
            expect(status in allowed, f"status {status} for {lines[:60]!r}")


ATTACKS = (
    idle_connections,
    new_connections,
    silent_subscribers,
    half_open,
    slow_requests,
    unread_answers,
    header_bombs,
    short_headers,
    wide_heads,
    pipelined_upgrades,
    pipelined_pages,
    odd_heads,
)
