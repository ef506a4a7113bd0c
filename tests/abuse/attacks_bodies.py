"""Attacks with request bodies: large, many, incomplete, in tiny chunks, and JSON that is expensive to parse."""

from __future__ import annotations

import asyncio
import contextlib

from tests.abuse.target import Target, answer, code, expect, opened, post, request, send

LARGEST = 16 * 1024 * 1024
HOLD_S = 3.0


async def huge_body(target: Target) -> None:
    """Attack with one body of 100 MB."""
    async with opened(target.http) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(target.count(100, 2)):
                writer.write(b" " * 1_000_000)
                await writer.drain()
        status, _ = await answer(reader)
        expect(status in (413, 0), f"status {status} for 100 MB")


async def closed_bodies(target: Target) -> None:
    """Attack with 400 bodies of 16 MB, on connections that close after their answer."""
    body = b'{"id":1,"method":"eth_chainId","params":["' + b"a" * (LARGEST - 64) + b'"]}'
    for _ in range(target.count(400, 6)):
        await post(target.http, body)


async def kept_bodies(target: Target) -> None:
    """Attack with 60 connections that have sent 16 MB and stay open."""
    body = b'{"id":1,"method":"eth_chainId","params":["' + b"a" * (LARGEST - 64) + b'"]}'
    async with contextlib.AsyncExitStack() as held:
        for _ in range(target.count(60, 6)):
            with contextlib.suppress(OSError):
                reader, writer = await held.enter_async_context(opened(target.http))
                sending = asyncio.create_task(send(writer, request(body, path=target.http.path)))
                status, _ = await answer(reader)
                expect(status in (200, 503, 0), f"status {status} for 16 MB")
                sending.cancel()
        await asyncio.sleep(HOLD_S)


async def half_bodies(target: Target) -> None:
    """Attack with 4,000 connections that send a body of 16 MB without its end, to every service."""
    places = [place for place in (target.http, target.graphql, target.metrics) if place is not None]
    head = b"POST /graphql HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    piece = b" " * 65_536

    async def one(number: int) -> None:
        place = places[number % len(places)]
        size = LARGEST if place == target.http else LARGEST // 4 if place == target.graphql else 65_536
        with contextlib.suppress(OSError):
            async with opened(place) as (_, writer), asyncio.timeout(8 * target.scale + HOLD_S):
                await send(writer, head % size)
                for _ in range(size // len(piece) - 1):
                    await send(writer, piece)
                await asyncio.sleep(HOLD_S)

    with contextlib.suppress(TimeoutError):
        await asyncio.gather(*(one(number) for number in range(target.count(4000))), return_exceptions=True)


async def tiny_chunks(target: Target) -> None:
    """Attack with 8,000,000 chunks of two bytes, over two connections."""
    head = b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def one() -> None:
        async with opened(target.http) as (_, writer):
            await send(writer, head)
            for _ in range(target.count(400, 4)):
                await send(writer, b"2\r\n  \r\n" * 10_000)
            await asyncio.sleep(1)

    await asyncio.gather(one(), one())


async def huge_batch(target: Target) -> None:
    """Attack with a batch of 100,000 requests."""
    member = b'{"id":1,"method":"eth_blockNumber"}'
    status, body = await post(target.http, b"[" + b",".join([member] * target.count(100_000, 2000)) + b"]")
    expect(status == 200 and code(body) == -32005, f"status {status}: {body[:100]!r}")


async def nested(target: Target) -> None:
    """Attack with JSON that is nested more deeply than parsers accept."""
    depth = target.count(1_000_000, 5000)
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        whole = opening * depth + b"1" + closing * depth
        for body in (whole, b'{"id":1.5,"method":"eth_call","params":%b}' % whole[:16_000_000]):
            status, _ = await post(target.http, body)
            expect(status in (400, 413), f"status {status} for nested JSON")
    for depth in (900, 1000, 1020, 1024):
        inner = b"[" * depth + b"]" * depth
        status, _ = await post(target.http, b'{"id":1.5,"method":"eth_call","params":%b}' % inner)
        expect(status in (200, 400), f"status {status} for {depth} levels")


def dear_bodies() -> dict[str, bytes]:
    """Return bodies of 16 MB that are especially expensive to parse in memory and time."""
    room = LARGEST - 256
    fractional = b'{"jsonrpc":"2.0","method":"eth_chainId","params":[%b],"id":1.5}'
    return {
        "numbers": fractional % (b"1," * (room // 2) + b"1"),
        "lists": fractional % (b"[]," * (room // 3) + b"[]"),
        "objects": fractional % (b"{}," * (room // 3) + b"{}"),
        "deep lists": fractional % ((b"[" * 900 + b"]" * 900 + b",") * (room // 1801) + b"1"),
        "keys": fractional % (b"{" + b",".join(b'"%x":0' % number for number in range(room // 12)) + b"}"),
        "batch": b"[" + b",".join([b'{"id":1.5,"method":"eth_chainId","params":[0,0,0,0]}'] * 1024) + b"]",
        "escapes": fractional % (b'"' + b"\\u00e9" * (room // 6) + b'"'),
    }


async def dear_json(target: Target) -> None:
    """Attack with bodies of 16 MB, 8 at a time: numbers, lists, objects, keys or escapes, with a fractional id."""
    for name, body in dear_bodies().items():
        small = body if target.scale >= 1 else body[: len(body) // 8]
        results = await asyncio.gather(*(post(target.http, small) for _ in range(target.count(8, 2))))
        for status, text in results:
            expect(status in (200, 400, 413, 503, 0), f"status {status} for {name}: {text[:80]!r}")


ATTACKS = (
    huge_body,
    closed_bodies,
    kept_bodies,
    half_bodies,
    tiny_chunks,
    huge_batch,
    nested,
    dear_json,
)
