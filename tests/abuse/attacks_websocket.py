"""Attacks over WebSocket: frames that are expensive to read, and messages that never end."""

from __future__ import annotations

import asyncio
import contextlib

from tests.abuse.target import (
    ANSWER_LIMIT_S,
    Target,
    answer,
    call,
    closing_code,
    expect,
    frame,
    handshake,
    make_logs,
    opened,
    send,
    websocket,
)

PING, CONTINUATION, TEXT = 0x89, 0x00, 0x01
SOCKETS = 8
MEGABYTE = 1_000_000


async def flood(target: Target, first: bytes, piece: bytes, most_s: float = ANSWER_LIMIT_S) -> list[int | None]:
    """Send the same frames repeatedly on some sockets. Returns the codes with which the node closed the sockets."""
    data = first + piece * (target.count(MEGABYTE, MEGABYTE // 8) // len(piece))

    async def one() -> int | None:
        async with websocket(target) as (reader, writer):
            sending = asyncio.create_task(send(writer, data))
            try:
                async with asyncio.timeout(most_s):
                    return await closing_code(reader)
            except TimeoutError:
                return None
            finally:
                sending.cancel()

    return await asyncio.gather(*(one() for _ in range(SOCKETS)))


async def empty_pings(target: Target) -> None:
    """Attack with 1 MB of empty pings on each of eight sockets."""
    codes = await flood(target, b"", frame(b"", PING))
    expect(codes == [1008] * SOCKETS, f"a client that only pings was not closed: {codes}")


async def empty_continuations(target: Target) -> None:
    """Attack with a message of empty fragments on each of eight sockets."""
    codes = await flood(target, frame(b"", TEXT), frame(b"", CONTINUATION))
    expect(None not in codes, f"pieces without end: {codes}")


async def small_fragments(target: Target) -> None:
    """Attack with a message in fragments of one byte on each of eight sockets."""
    codes = await flood(target, frame(b"[", TEXT), frame(b" ", CONTINUATION))
    expect(None not in codes, f"pieces without end: {codes}")


async def empty_messages(target: Target) -> None:
    """Attack with 1 MB of `{}` on each of eight sockets. The attacker reads the answers."""
    await flood(target, b"", frame(b"{}"), max(2, 10 * target.scale))


async def many_pings(target: Target) -> None:
    """Attack with 4,000 sockets, each with some kilobytes of pings."""
    pings = frame(b"", PING) * 2000

    async def one() -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            async with opened(target.ws) as (reader, writer):
                await send(writer, handshake(path=target.ws.path) + pings)
                async with asyncio.timeout(10):
                    await reader.read(4096)
                    await asyncio.sleep(1)

    await asyncio.gather(*(one() for _ in range(target.count(4000))), return_exceptions=True)


async def half_messages(target: Target) -> None:
    """Attack with 4,000 sockets, each with half a megabyte of a message that never ends."""
    piece = frame(b" " * 500_000, TEXT)

    async def one() -> None:
        with contextlib.suppress(OSError, TimeoutError):
            async with websocket(target) as (_, writer), asyncio.timeout(10):
                await send(writer, piece)
                await asyncio.sleep(3)

    await asyncio.gather(*(one() for _ in range(target.count(4000))), return_exceptions=True)


async def invalid_text(target: Target) -> None:
    """Attack with text frames that are not UTF-8."""
    async with websocket(target) as (reader, writer):
        writer.write(frame(b'{"method":"\xff\xfe"}'))
        data = await asyncio.wait_for(reader.read(4), ANSWER_LIMIT_S)
        expect(data[:1] == b"\x88" and data[2:4] == (1007).to_bytes(2, "big"), f"{data!r} instead of a close frame")


async def foreign_pages(target: Target) -> None:
    """Attack with a web page of another origin that opens a socket under an allowed host name."""
    async with opened(target.ws) as (reader, writer):
        await send(writer, handshake(b"Origin: https://evil.example\r\n"))
        status, _ = await answer(reader)
        expect(status == 403, f"status {status} for a page of somebody else")


async def wide_subscriptions(target: Target) -> None:
    """Attack with subscriptions to logs of a hundred thousand addresses each."""
    addresses = [f"0x{number:040x}" for number in range(target.count(20_000, 500))]
    body = frame(call("eth_subscribe", "logs", {"address": addresses}))

    async def one() -> None:
        async with websocket(target) as (_, writer):
            for _ in range(target.count(50, 10)):
                await send(writer, body)
            await asyncio.sleep(3)

    await asyncio.gather(*(one() for _ in range(SOCKETS)))


async def wanted_logs(target: Target) -> None:
    """Attack with 1,000 different subscriptions that all match the 3,000 logs of a block. The sockets read all
    notifications.
    """

    async def one(number: int) -> None:
        with contextlib.suppress(OSError):
            async with websocket(target) as (reader, writer):
                for count in range(target.count(1000, 80) // SOCKETS):
                    last = hex(10**6 + number * 1000 + count)
                    await send(writer, frame(call("eth_subscribe", "logs", {"toBlock": last})))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(2 + 8 * target.scale):
                        while await reader.read(1 << 18):
                            pass

    listening = [asyncio.create_task(one(number)) for number in range(SOCKETS)]
    await asyncio.sleep(1)
    await make_logs(target, target.count(3000, 100))
    await asyncio.gather(*listening)


async def leaving_subscribers(target: Target) -> None:
    """Attack with 4,000 sockets of four subscriptions each. All sockets close at the same moment."""
    asked = frame(call("eth_subscribe", "newHeads")) * 4
    async with contextlib.AsyncExitStack() as held:
        for _ in range(target.count(4000, 40)):
            with contextlib.suppress(OSError):
                _, writer = await held.enter_async_context(websocket(target))
                writer.write(asked)
        await asyncio.sleep(1)


ATTACKS = (
    empty_pings,
    empty_continuations,
    small_fragments,
    empty_messages,
    many_pings,
    half_messages,
    invalid_text,
    foreign_pages,
    wide_subscriptions,
    wanted_logs,
    leaving_subscribers,
)
