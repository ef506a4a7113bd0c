from __future__ import annotations

import asyncio

from ophion.peers.connection.receive_scheduler import ReceiveScheduler
from ophion.runtime.clock import ManualClock


class Worker:
    """A worker that needs a number of steps, each of which takes some time."""

    def __init__(self, name: str, steps: int, clock: ManualClock, log: list[str], cost: float = 0.001) -> None:
        self.name, self.steps, self.clock, self.log, self.cost = name, steps, clock, log, cost

    def step(self) -> bool:
        self.log.append(self.name)
        self.clock.advance(self.cost)
        self.steps -= 1
        return self.steps > 0


def test_connections_with_work_are_scheduled_round_robin() -> None:
    async def story() -> list[str]:
        clock, log = ManualClock(), list[str]()
        scheduler = ReceiveScheduler(asyncio.get_running_loop(), clock, slice_s=1.0)
        for name, steps in (("a", 3), ("b", 1), ("c", 2)):
            scheduler.add(Worker(name, steps, clock, log).step)
        assert len(scheduler) == 3
        await asyncio.sleep(0)
        assert len(scheduler) == 0
        return log

    assert asyncio.run(story()) == ["a", "b", "c", "a", "c", "a"]


def test_the_event_loop_runs_after_each_time_slice() -> None:
    async def story() -> None:
        clock, log = ManualClock(), list[str]()
        scheduler = ReceiveScheduler(asyncio.get_running_loop(), clock, slice_s=0.004)
        scheduler.add(Worker("a", 10, clock, log).step)
        rounds = []
        while len(scheduler):
            await asyncio.sleep(0)
            rounds.append(len(log))
        assert rounds == [4, 8, 10]
        scheduler.add(Worker("b", 1, clock, log).step)
        await asyncio.sleep(0)
        assert log[-1] == "b"

    asyncio.run(story())


def test_work_that_comes_during_a_round_joins_it() -> None:
    async def story() -> list[str]:
        clock, log = ManualClock(), list[str]()
        scheduler = ReceiveScheduler(asyncio.get_running_loop(), clock, slice_s=1.0)

        def first() -> bool:
            scheduler.add(Worker("second", 1, clock, log).step)
            log.append("first")
            return False

        scheduler.add(first)
        await asyncio.sleep(0)
        return log

    assert asyncio.run(story()) == ["first", "second"]


def test_members_take_every_second_step_however_many_unknown_peers_there_are() -> None:
    async def story() -> list[str]:
        clock, log = ManualClock(), list[str]()
        scheduler = ReceiveScheduler(asyncio.get_running_loop(), clock, slice_s=0.004)
        for _ in range(20):
            scheduler.add(Worker("unknown", 10, clock, log).step)
        scheduler.add(Worker("member", 4, clock, log).step, is_member=True)
        for _ in range(3):
            await asyncio.sleep(0)
        return log[:8]

    assert asyncio.run(story()) == ["member", "unknown"] * 4
