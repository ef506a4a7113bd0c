"""Services start in order, stop in reverse order, and stop together after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ophion.runtime.supervisor import ServiceEnded, Supervisor


class Scripted:
    """A service that records its events."""

    def __init__(self, name: str, diary: list[str], failure: Exception | None = None, ends: bool = False) -> None:
        self.name = name
        self.diary = diary
        self.failure = failure
        self.ends = ends

    async def run(self, ready: Callable[[], None]) -> None:
        self.diary.append(f"{self.name} starts")
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        ready()
        if self.ends:
            return
        try:
            await asyncio.Event().wait()
        finally:
            self.diary.append(f"{self.name} stops")


def test_services_start_in_order_and_stop_in_the_opposite_order() -> None:
    diary: list[str] = []

    async def story() -> None:
        supervisor = Supervisor([Scripted("a", diary), Scripted("b", diary)])

        def started() -> None:
            diary.append("started")
            supervisor.stop()

        await supervisor.run(started)

    asyncio.run(story())
    assert diary == ["a starts", "b starts", "started", "b stops", "a stops"]


def test_a_failing_service_stops_the_others_and_its_error_is_raised() -> None:
    diary: list[str] = []

    async def story() -> None:
        await Supervisor([Scripted("a", diary), Scripted("b", diary, OSError("port taken"))]).run()

    with pytest.raises(OSError, match="port taken"):
        asyncio.run(story())
    assert diary == ["a starts", "b starts", "a stops"]


def test_a_service_that_returns_ends_the_node() -> None:
    diary: list[str] = []

    async def story() -> None:
        await Supervisor([Scripted("a", diary, ends=True), Scripted("b", diary)]).run()

    with pytest.raises(ServiceEnded, match="service a ended by itself"):
        asyncio.run(story())


def test_stopping_before_everything_has_started_starts_no_more() -> None:
    diary: list[str] = []

    async def story() -> None:
        supervisor = Supervisor([Scripted("a", diary), Scripted("b", diary)])
        supervisor.stop()
        await supervisor.run()

    asyncio.run(story())
    assert "b starts" not in diary
