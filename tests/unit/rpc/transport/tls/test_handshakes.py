"""Handshakes: those that come to an end, those that do not, and those that are too many."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest
import uvloop

from ophion.rpc.transport.tls.certificates import TlsSettings, server_context
from ophion.rpc.transport.tls.handshakes import Handshakes
from tests.unit.rpc.transport.tls.test_certificates import identity, pem_file

RUN = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
Run = Callable[[Awaitable[None]], None]


class Echo(asyncio.Protocol):
    """Says in capitals what it hears."""

    made = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Echo.made += 1
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data.upper())


class Service:
    """A listening port behind handshakes."""

    def __init__(self, folder: Path, most: int = 4) -> None:
        store = pem_file(folder / "node.pem", *identity("node"))
        self.client = ssl.create_default_context(cafile=str(store))
        self.handshakes = Handshakes(server_context(TlsSettings("", store)), Echo, most)
        self.port = 0

    async def listen(self) -> None:
        server = await asyncio.get_running_loop().create_server(self.handshakes.newcomer, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def ask(self, text: bytes) -> bytes:
        context = self.client
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname="localhost")
        writer.write(text)
        answer = await reader.readexactly(len(text))
        writer.close()
        return answer

    async def settle(self, count: int) -> None:
        while len(self.handshakes) != count:  # noqa: ASYNC110  # what is tested has no event for it
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
def test_the_oldest_handshake_gives_way_and_honest_clients_are_served(run: Run, tmp_path: Path) -> None:
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
    """The last flight of the client and its first request in one segment."""

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
