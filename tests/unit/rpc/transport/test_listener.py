"""Tests the work of a listener for all its connections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import pytest

from ophion.rpc.transport import listener
from ophion.rpc.transport.listener import ClosableApplication, Listener

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
