"""The server sends long answers in pieces, as time slices permit."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path

import pytest
import uvloop

from ophion.rpc.tls.certificates import TlsSettings, server_context
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.messages import Request, Response
from ophion.rpc.transport.http.policy import HttpLimits, HttpPolicy
from ophion.rpc.transport.origins import OriginList
from ophion.runtime.chunked_body import PORTION_BYTES, EncryptedReplyPieces, ReplyPieces
from ophion.runtime.fair_scheduler import FairScheduler
from tests.unit.rpc.tls.test_certificates import identity, pem_file

LONG = os.urandom(1 << 16) * 256
SOCKET_BYTES = 64 * 1024
"""Bytes that the system buffers for a slow reader."""
HELD_BYTES = 8 * PORTION_BYTES
"""Size of a few encrypted portions, far less than the whole answer."""


def use_up(scheduler: FairScheduler) -> None:
    """Use up the time of this step of the event loop."""
    while not scheduler.is_over:
        pass


def test_a_portion_waits_for_time_in_the_turn() -> None:
    async def main() -> None:
        scheduler = FairScheduler(turn_s=0.0)
        portions = EncryptedReplyPieces([bytes(100_000), b"x"], scheduler)
        first = asyncio.ensure_future(portions.next())
        use_up(scheduler)
        await asyncio.sleep(0)
        assert not first.done()
        assert await first == bytes(PORTION_BYTES)
        assert portions.weight == 100_001 - PORTION_BYTES

    asyncio.run(main())


def test_portions_have_their_share_of_a_turn_and_no_more() -> None:
    async def main() -> None:
        scheduler = FairScheduler(turn_s=0.0)
        crowd = [EncryptedReplyPieces([bytes(1000)], scheduler) for _ in range(100)]
        pieces = [asyncio.ensure_future(one.next()) for one in crowd]
        use_up(scheduler)
        counts = [0]
        while not all(piece.done() for piece in pieces):
            await asyncio.sleep(0)
            counts.append(sum(piece.done() for piece in pieces))
        assert max(later - sooner for sooner, later in pairwise(counts)) <= 21

    asyncio.run(main())


def test_who_has_gone_is_not_waited_for() -> None:
    async def main() -> None:
        scheduler = FairScheduler(turn_s=0.0)
        portions = EncryptedReplyPieces([bytes(100_000)], scheduler)
        piece = asyncio.ensure_future(portions.next())
        asyncio.get_running_loop().call_soon(piece.cancel)
        use_up(scheduler)
        portions.close()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not scheduler
        assert piece.cancelled()
        assert portions.weight == 0

    asyncio.run(main())


class Long:
    """Answers every request with a long text."""

    plain = None

    def respond(self, request: Request) -> Response:
        return Response(200, (LONG[:1000], LONG[1000:]))

    def close(self) -> None:
        pass


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_what_a_client_does_not_take_is_not_encrypted(run: Callable[[Awaitable[None]], None], tmp_path: Path) -> None:
    store = pem_file(tmp_path / "node.pem", *identity("node"))
    made: list[HttpConnection] = []
    policy = HttpPolicy(
        Long(),
        HostList(["localhost"]),
        OriginList([]),
        HttpLimits(),
        PlainHeads(),
        lambda opened: not made.append(opened),
        lambda closed: None,
    )

    async def story() -> None:
        loop = asyncio.get_running_loop()
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
        server = await loop.create_server(
            lambda: HttpConnection(policy), sock=listening, ssl=server_context(TlsSettings("", store))
        )
        client = ssl.create_default_context(cafile=str(store))
        address = server.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(
            *address, ssl=client, server_hostname="localhost", limit=SOCKET_BYTES
        )
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
        while not (made and made[0].is_paused):  # noqa: ASYNC110  # the tested code gives no event
            await asyncio.sleep(0.001)
        for _ in range(100):
            await asyncio.sleep(0)
        assert made[0].transport.get_write_buffer_size() < HELD_BYTES
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        for _ in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"Content-Length: %d\r\n" % len(LONG) in head
            assert await reader.readexactly(len(LONG)) == LONG
        writer.close()
        server.close()

    run(story())


def test_nothing_is_left_of_a_whole_that_was_handed_out() -> None:
    async def main() -> None:
        whole = ReplyPieces([b"ab", b"cdef"], 4)
        assert [await whole.next(), await whole.next(), await whole.next()] == [b"abcd", b"ef", None]
        assert whole.weight == 0

    asyncio.run(main())
