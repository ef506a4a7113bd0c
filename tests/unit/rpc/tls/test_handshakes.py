"""Tests completed and unfinished TLS handshakes, and the limit on handshakes."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import weakref
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import cast

import pytest
import uvloop

from ophion.rpc.tls.certificates import TlsSettings, server_context
from ophion.rpc.tls.handshakes import Handshakes, may_begin
from ophion.runtime.fair_scheduler import FairScheduler
from tests.unit.rpc.tls.test_certificates import identity, pem_file

RUN = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
Run = Callable[[Awaitable[None]], None]


class Echo(asyncio.Protocol):
    """A protocol that answers its input in capital letters."""

    made = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Echo.made += 1
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data.upper())


def hello() -> bytes:
    """Return the first message of a TLS client."""
    arriving, leaving = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(arriving, leaving, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return leaving.read()


class Service:
    """A listening port with TLS handshakes."""

    def __init__(self, folder: Path, most: int = 4) -> None:
        store = pem_file(folder / "node.pem", *identity("node"))
        self.client = ssl.create_default_context(cafile=str(store))
        self.handshakes = Handshakes(server_context(TlsSettings("", store)), Echo, FairScheduler(), most)
        self.port = 0

    async def listen(self, doors: int = 1) -> None:
        loop, newcomer = asyncio.get_running_loop(), self.handshakes.newcomer
        server = await loop.create_server(newcomer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        for _ in range(1, doors):
            await loop.create_server(newcomer, sock=socket.socket(fileno=os.dup(server.sockets[0].fileno())))

    async def ask(self, text: bytes) -> bytes:
        context = self.client
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname="localhost")
        writer.write(text)
        answer = await reader.readexactly(len(text))
        writer.close()
        return answer

    async def settle(self, count: int) -> None:
        while len(self.handshakes) != count:  # noqa: ASYNC110  # the tested code gives no event
            await asyncio.sleep(0.001)


@RUN
def test_who_finishes_the_handshake_talks_to_the_protocol(run: Run, tmp_path: Path) -> None:
    async def story() -> None:
        service = Service(tmp_path)
        await service.listen()
        assert await asyncio.gather(*(service.ask(b"hello %d" % n) for n in range(4))) == [
            b"HELLO %d" % n for n in range(4)
        ]
        assert len(service.handshakes) == 0

    run(story())


@RUN
def test_the_oldest_handshake_is_dropped_and_honest_clients_are_served(run: Run, tmp_path: Path) -> None:
    async def story() -> None:
        service, before = Service(tmp_path), Echo.made
        await service.listen()
        silent = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(4)]
        await service.settle(4)
        silent += [socket.create_connection(("127.0.0.1", service.port)) for _ in range(6)]
        loop = asyncio.get_running_loop()
        for gone in silent[:6]:
            gone.setblocking(False)
            with suppress(ConnectionResetError):
                assert await loop.sock_recv(gone, 1) == b""
        assert await service.ask(b"hello") == b"HELLO"
        for one in silent:
            one.close()
        await service.settle(0)
        assert Echo.made == before + 1, "nobody talks to those who gave way"

    run(story())


@RUN
@pytest.mark.parametrize("first", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01"])
def test_what_is_no_handshake_leaves_nothing_behind(run: Run, first: bytes, tmp_path: Path) -> None:
    async def story() -> None:
        service = Service(tmp_path)
        await service.listen()
        with socket.create_connection(("127.0.0.1", service.port)) as client:
            await service.settle(1)
            client.sendall(first)
        await service.settle(0)
        assert await service.ask(b"hello") == b"HELLO"

    run(story())


@RUN
def test_what_comes_together_with_the_end_of_the_handshake_is_not_lost(run: Run, tmp_path: Path) -> None:
    """The last handshake message and the first request arrive in one segment."""

    async def story() -> None:
        service = Service(tmp_path)
        await service.listen()
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = service.client.wrap_bio(incoming, outgoing, server_hostname="localhost")
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        while True:
            try:
                session.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await reader.read(2**16))
        session.write(b"early")
        writer.write(outgoing.read())
        while True:
            try:
                assert session.read(5) == b"EARLY"
                break
            except ssl.SSLWantReadError:
                incoming.write(await reader.read(2**16))
        writer.close()

    run(story())


NO_HELLOS = (
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x15\x03\x03\x00\x02\x01\x00",
    b"\x16\x02\x01\x00\x05\x01",
    b"\x16\x03\x01\xff\xff\x01",
    b"\x16\x03\x01\x00\x00\x16",
    b"\x16\x03\x01\x00\x05\x02",
)


@pytest.mark.parametrize("first", NO_HELLOS)
def test_what_is_no_hello_is_recognised_as_soon_as_it_differs(first: bytes) -> None:
    verdicts = [may_begin(first[: size + 1]) for size in range(6)]
    assert not verdicts[-1]
    assert verdicts == sorted(verdicts, reverse=True), "once refused, always refused"


def test_the_beginning_of_a_hello_is_recognised_however_little_has_come() -> None:
    first = hello()
    assert all(may_begin(first[:size]) for size in range(1, len(first)))


@RUN
def test_openssl_is_not_called_for_invalid_first_bytes(run: Run, tmp_path: Path) -> None:
    async def story() -> None:
        service = Service(tmp_path, 32)
        await service.listen()
        for first in NO_HELLOS:
            reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
            writer.write(first)
            with suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()
        assert service.handshakes.begun == 0
        assert await service.ask(b"hello") == b"HELLO"
        assert service.handshakes.begun == 1

    run(story())


@RUN
def test_who_comes_byte_by_byte_is_served(run: Run, tmp_path: Path) -> None:
    async def story() -> None:
        service = Service(tmp_path)
        await service.listen()
        reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
        for one in hello():
            writer.write(bytes([one]))
            await asyncio.sleep(0)
        assert (await reader.readexactly(1))[0] == 0x16, "the answer of the node"
        writer.close()
        await service.settle(0)

    run(story())


@RUN
def test_many_simultaneous_handshakes_start_a_few_at_a_time(run: Run, tmp_path: Path) -> None:
    crowd = 64

    async def story() -> None:
        service = Service(tmp_path, crowd)
        await service.listen()
        streams = [await asyncio.open_connection("127.0.0.1", service.port) for _ in range(crowd)]
        await service.settle(crowd)
        first, handshakes, begun = hello(), service.handshakes, [0]
        for _, writer in streams:
            writer.write(first)
        while handshakes.begun < crowd:
            await asyncio.sleep(0)
            begun.append(handshakes.begun)
        assert max(after - before for before, after in pairwise(begun)) <= 10
        for reader, writer in streams:
            assert (await reader.readexactly(1))[0] == 0x16
            writer.close()
        await service.settle(0)
        assert await service.ask(b"hello") == b"HELLO"

    run(story())


@RUN
def test_a_disconnected_client_uses_no_time_slice(run: Run, tmp_path: Path) -> None:
    async def story() -> None:
        service = Service(tmp_path, 64)
        await service.listen()
        sockets = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(64)]
        await service.settle(64)
        first = hello()
        for one in sockets:
            one.sendall(first)
            one.close()
        await service.settle(0)
        assert await service.ask(b"hello") == b"HELLO"

    run(story())


def test_a_handshake_that_fails_leaves_nothing_to_be_collected(tmp_path: Path) -> None:
    """A failed handshake is freed without garbage collection, because it holds a quarter of a megabyte. (asyncio itself
    leaves some objects; nodes use uvloop.)
    """

    async def story() -> None:
        service = Service(tmp_path)
        await service.listen()
        left = weakref.WeakSet[object]()
        newcomer = service.handshakes.newcomer

        def noted() -> asyncio.Protocol:
            one = newcomer()
            left.add(one)
            return one

        server = await asyncio.get_running_loop().create_server(noted, "127.0.0.1", 0)
        for _ in range(5):
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(hello() + bytes(5000))
            with suppress(ConnectionResetError):
                await reader.read()
            writer.close()
        await service.settle(0)
        assert service.handshakes.begun == 5
        while left:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    gc.disable()
    try:
        uvloop.run(asyncio.wait_for(story(), 20))
    finally:
        gc.enable()


def test_a_queued_handshake_is_not_dropped_for_a_later_one(tmp_path: Path) -> None:
    """Queued handshakes do not count as pending, because they wait for the node. So more clients than the limit can
    connect.
    """
    crowd = 90

    async def story() -> None:
        service = Service(tmp_path, 16)
        await service.listen(8)
        first = hello()
        sockets = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(crowd)]
        for one in sockets:
            one.sendall(first)
            one.setblocking(False)
        loop = asyncio.get_running_loop()
        answers = [await asyncio.wait_for(loop.sock_recv(one, 1), 20) for one in sockets]
        assert answers == [b"\x16"] * crowd
        for one in sockets:
            one.close()
        await service.settle(0)

    uvloop.run(story())
