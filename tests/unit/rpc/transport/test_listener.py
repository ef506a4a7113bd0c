"""Tests the work of a listener for all its connections."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable

import pytest

from ophion.rpc.transport import listener
from ophion.rpc.transport.listener import ClosableApplication, Listener
from ophion.testing.wait_for import until

CONNECTIONS = 1000


class SlotHolder:
    """A connection of a client that sends nothing."""

    def __init__(self, ticked: list[SlotHolder]) -> None:
        self._ticked = ticked

    def tick(self, seconds: float) -> None:
        self._ticked.append(self)

    def idleness(self) -> float:
        return 0.0

    def evict(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Service(Listener[SlotHolder]):
    """A listening service without clients."""

    def _begin(self, loop: asyncio.AbstractEventLoop) -> tuple[ClosableApplication, Callable[[], asyncio.BaseProtocol]]:
        raise AssertionError("nobody comes")


def crowded() -> tuple[Service, list[SlotHolder], list[SlotHolder]]:
    """Return a service, its connections, and a list to which each connection adds itself at its tick."""
    service, ticked = Service("service", "127.0.0.1", 0, CONNECTIONS), list[SlotHolder]()
    guests = [SlotHolder(ticked) for _ in range(CONNECTIONS)]
    for guest in guests:
        service.places.admit(guest)
    return service, guests, ticked


@contextlib.asynccontextmanager
async def serving(service: Service):  # type: ignore[no-untyped-def]
    running = asyncio.create_task(service.run(lambda: None))
    try:
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


def test_time_passes_for_some_connections_in_each_turn_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_TICK_S", 0.001)

    async def main() -> None:
        service, guests, ticked = crowded()
        async with serving(service):
            most = 0
            while len(ticked) < CONNECTIONS:
                before = len(ticked)
                await asyncio.sleep(0)
                most = max(most, len(ticked) - before)
        assert 0 < most <= listener._TICKED
        assert ticked[:CONNECTIONS] == guests

    asyncio.run(main())


def test_time_does_not_pass_for_who_has_left_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_TICK_S", 0.001)

    async def main() -> None:
        service, guests, ticked = crowded()
        async with serving(service):
            while not ticked:  # noqa: ASYNC110  # the test needs single steps of the loop
                await asyncio.sleep(0)
            service.places.leave(guests[-1])
            while ticked.count(guests[0]) < 2:  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert guests[-2] in ticked
        assert guests[-1] not in ticked

    asyncio.run(main())


class Greeter(asyncio.Protocol):
    """Sends the name of its service to each client."""

    def __init__(self, service: Sharing) -> None:
        self._service = service

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._service.places.admit(self)
        transport.write(self._service.name.encode())
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._service.places.leave(self)

    def tick(self, seconds: float) -> None: ...
    def idleness(self) -> float:
        return 0.0

    def evict(self) -> None: ...
    def close(self) -> None:
        self._transport.close()


class Application:
    """An application without resources."""

    def close(self) -> None: ...


class Sharing(Listener[Greeter]):
    """A service whose connections send its name."""

    def _begin(self, loop: asyncio.AbstractEventLoop) -> tuple[ClosableApplication, Callable[[], asyncio.BaseProtocol]]:
        return Application(), lambda: Greeter(self)


def test_connections_are_shared_with_another_service() -> None:
    async def main() -> None:
        first, second = Sharing("first", "127.0.0.1", 0, 10), Sharing("second", "127.0.0.1", 0, 10)
        second.is_fed = True
        opened: list[bool] = []
        first.on_open = lambda: opened.append(True)

        def offer(connection: socket.socket) -> bool:
            if second.connections < first.connections:
                second.adopt(connection.dup())
                return True
            return False

        first.offer = offer
        async with serving(first), serving(second):
            await until(lambda: opened)
            streams = []
            names = []
            for _ in range(6):
                reader, writer = await asyncio.open_connection("127.0.0.1", first.port)
                streams.append(writer)
                names.append((await reader.read(100)).decode())
            assert names == ["first", "second"] * 3
            assert (first.connections, second.connections) == (3, 3)
            streams[1].close()
            await until(lambda: second.adopted_and_closed == 1)
            for writer in streams:
                writer.close()

    asyncio.run(main())


def test_connections_wait_while_there_is_no_free_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "_ACCEPT_PAUSE_S", 0.01)
    failures = [OSError(errno.EMFILE, "no descriptor")] * 3
    accept = socket.socket.accept

    def failing(self: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise failures.pop()
        return accept(self)

    async def main() -> None:
        service, opened = Sharing("service", "127.0.0.1", 0, 10), list[bool]()
        service.offer, service.on_open = lambda connection: False, lambda: opened.append(True)
        async with serving(service):
            await until(lambda: opened)
            monkeypatch.setattr(socket.socket, "accept", failing)
            reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
            assert await reader.read(100) == b"service"
            writer.close()
        assert not failures

    asyncio.run(main())


def test_several_addresses_share_a_port() -> None:
    async def scenario() -> None:
        service = Service("service", "127.0.0.1,127.0.0.2", 0, CONNECTIONS)
        service.waits_to_open = True
        async with serving(service):
            await until(lambda: bool(service.port))
            found = {one.getsockname() for one in service._bound}
            assert found == {("127.0.0.1", service.port), ("127.0.0.2", service.port)}

    asyncio.run(scenario())
