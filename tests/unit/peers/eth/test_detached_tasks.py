"""Work that outlives connections."""

from __future__ import annotations

import asyncio

import pytest

from ophion.peers.eth.detached_tasks import Tasks


async def _wait(started: list[int], gate: asyncio.Event) -> None:
    started.append(1)
    await gate.wait()


def test_tasks_are_bounded_and_end_with_their_service() -> None:
    async def story() -> None:
        tasks, started, gate = Tasks(2), list[int](), asyncio.Event()
        assert not tasks.spawn(_wait(started, gate)), "the service does not run yet"
        service = asyncio.create_task(tasks.run(lambda: None))
        await asyncio.sleep(0)
        assert [tasks.spawn(_wait(started, gate)) for _ in range(3)] == [True, True, False]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.sleep(0.001)
        assert tasks.spawn(_wait(started, asyncio.Event()))
        await asyncio.sleep(0.001)
        service.cancel()
        await asyncio.wait({service})
        assert service.cancelled()
        assert len(started) == 3

    asyncio.run(story())


def test_a_failure_is_the_services_own() -> None:
    async def broken() -> None:
        raise ValueError("a bug")

    async def story() -> None:
        tasks = Tasks(2)
        service = asyncio.create_task(tasks.run(lambda: None))
        await asyncio.sleep(0)
        tasks.spawn(broken())
        with pytest.raises(ValueError, match="a bug"):
            await service

    asyncio.run(story())
