"""Tests tasks that outlive connections."""

from __future__ import annotations

import asyncio

import pytest

from ophion.peers.eth.detached_tasks import DetachedTasks


async def _wait(started: list[int], gate: asyncio.Event) -> None:
    started.append(1)
    await gate.wait()


def test_tasks_are_bounded_and_end_with_their_service() -> None:
    async def scenario() -> None:
        tasks = DetachedTasks[str](lambda owner: owner == "member", max_per_peer=2, max_of_unknown=3)
        started, gate = list[int](), asyncio.Event()
        assert not tasks.spawn(_wait(started, gate)), "the service does not run yet"
        service = asyncio.create_task(tasks.run(lambda: None))
        await asyncio.sleep(0)
        assert [tasks.spawn(_wait(started, gate), "one") for _ in range(3)] == [True, True, False]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.sleep(0.001)
        assert tasks.spawn(_wait(started, asyncio.Event()), "one")
        await asyncio.sleep(0.001)
        service.cancel()
        await asyncio.wait({service})
        assert service.cancelled()
        assert len(started) == 3

    asyncio.run(scenario())


def test_unknown_peers_leave_members_their_share() -> None:
    async def scenario() -> None:
        tasks = DetachedTasks[str](lambda owner: owner.startswith("member"), max_per_peer=2, max_of_unknown=3)
        service = asyncio.create_task(tasks.run(lambda: None))
        await asyncio.sleep(0)
        started, gate = list[int](), asyncio.Event()
        unknown = [tasks.spawn(_wait(started, gate), f"unknown {number}") for number in range(20)]
        assert unknown.count(True) == 3
        for member in ("member 1", "member 2"):
            assert [tasks.spawn(_wait(started, gate), member) for _ in range(3)] == [True, True, False]
        assert tasks.spawn(_wait(started, gate)), "the node's own work"
        gate.set()
        await asyncio.sleep(0.001)
        assert len(tasks) == 0
        assert tasks.spawn(_wait(started, gate), "unknown 9")
        service.cancel()
        await asyncio.wait({service})

    asyncio.run(scenario())


def test_a_failure_is_the_services_own() -> None:
    async def broken() -> None:
        raise ValueError("a bug")

    async def scenario() -> None:
        tasks = DetachedTasks[str](lambda owner: False)
        service = asyncio.create_task(tasks.run(lambda: None))
        await asyncio.sleep(0)
        tasks.spawn(broken())
        with pytest.raises(ValueError, match="a bug"):
            await service

    asyncio.run(scenario())
