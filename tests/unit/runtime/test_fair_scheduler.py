"""Tests the order of work when the loop is busy."""

from __future__ import annotations

import asyncio
from time import perf_counter, sleep, thread_time

from ophion.runtime.block_priority import BlockPriority
from ophion.runtime.fair_scheduler import FairScheduler, LoopShare


class Worker:
    """A worker that works for some time at each call, until it has finished."""

    def __init__(
        self,
        scheduler: FairScheduler,
        log: list[str],
        name: str,
        slices: int,
        seconds: float = 0.0,
        in_line: bool = False,
    ) -> None:
        self.share = LoopShare()
        self._turns = scheduler
        self._log = log
        self._name = name
        self._slices = slices
        self._seconds = seconds
        self._in_line = in_line
        self._size = 100

    def wait(self, size: int = 0) -> None:
        self._size = size or self._size
        if self._in_line:
            self._turns.enqueue(self)
        else:
            self._turns.wait(self, self.share.rank(self._size))

    def work(self) -> None:
        begun = perf_counter()
        self._log.append(self._name)
        end = perf_counter() + self._seconds
        while perf_counter() < end:
            pass
        self._slices -= 1
        self._turns.end(begun, self.share)
        if self._slices:
            self.wait()


async def until_nobody_waits(scheduler: FairScheduler) -> None:
    while len(scheduler):  # noqa: ASYNC110  # the test needs single steps of the loop
        await asyncio.sleep(0)


def test_little_before_much_before_those_who_keep_the_loop_busy() -> None:
    async def main() -> None:
        scheduler, log = FairScheduler(), list[str]()
        busy = Worker(scheduler, log, "busy", 1)
        busy.share.record(0.5, perf_counter())
        busy.wait()
        for size in (50_000, 2_000, 100):
            Worker(scheduler, log, str(size), 1).wait(size)
        await until_nobody_waits(scheduler)
        assert log == ["100", "2000", "50000", "busy"]

    asyncio.run(main())


def test_an_ordinary_request_overtakes_many_busy_connections() -> None:
    async def main() -> None:
        scheduler, log = FairScheduler(), list[str]()
        for number in range(50):
            Worker(scheduler, log, f"crowd {number}", 1000, 0.001).wait(30_000)
        for _ in range(5):
            await asyncio.sleep(0)
        assert scheduler.has_many_waiting
        Worker(scheduler, log, "ordinary", 1).wait()
        before = len(log)
        while len(log) == before:  # noqa: ASYNC110  # the test needs single steps of the loop
            await asyncio.sleep(0)
        assert log[before] == "ordinary"

    asyncio.run(main())


def test_recorded_use_decays() -> None:
    share = LoopShare()
    share.record(0.05, perf_counter() - 10)
    assert share.rank(100) == 1.0 + 100 * 1e-12, "a look again"
    share.record(0.0, perf_counter())
    assert share.rank(100) == 0.0
    share.record(0.05, perf_counter())
    assert share.rank(100) > 2.0


def test_time_without_a_processor_is_not_charged() -> None:
    async def main() -> None:
        scheduler, share = FairScheduler(), LoopShare()
        begun = perf_counter()
        sleep(0.05)  # noqa: ASYNC251  # the sleep uses no processor time
        scheduler.end(begun, share)
        assert share.rank(100) == 0.0
        begun = perf_counter()
        worked = thread_time()
        while thread_time() < worked + 0.03:
            pass
        scheduler.end(begun, share)
        assert share.rank(100) > 2.0

    asyncio.run(main())


def test_those_in_line_are_finished_one_after_the_other() -> None:
    async def main() -> None:
        scheduler, log = FairScheduler(), list[str]()
        for name in "abc":
            Worker(scheduler, log, name, 20, 0.0005, in_line=True).wait()
        await asyncio.sleep(0)
        Worker(scheduler, log, "ordinary", 1).wait()
        await until_nobody_waits(scheduler)
        assert log.index("ordinary") < 20, "others come in between"
        log.remove("ordinary")
        assert "".join(log) == "a" * 20 + "b" * 20 + "c" * 20

    asyncio.run(main())


def test_the_loop_is_not_held_beyond_a_part_of_a_turn() -> None:
    async def main() -> None:
        scheduler, log = FairScheduler(), list[str]()
        for number in range(100):
            Worker(scheduler, log, str(number), 1, 0.001).wait()
        await asyncio.sleep(0)
        assert len(log) < 100, "others come in between"
        await until_nobody_waits(scheduler)
        assert sorted(log, key=int) == log

    asyncio.run(main())


def test_a_turn_that_is_spent_is_over_until_the_next() -> None:
    async def main() -> None:
        scheduler = FairScheduler(turn_s=1e6)
        scheduler.spend(5e5)
        assert not scheduler.is_over
        scheduler.spend(1e6)
        assert scheduler.is_over
        await asyncio.sleep(0)
        assert not scheduler.is_over

    asyncio.run(main())


def test_a_step_ends_by_wall_time() -> None:
    """Wall time limits a step. The scheduler does not measure socket reads, and these reads take most of a step."""

    async def main() -> None:
        scheduler = FairScheduler(turn_s=0.5)  # the time slice is longer than the delays of a busy machine
        assert not scheduler.is_over
        sleep(0.6)  # noqa: ASYNC251  # the sleep blocks the event loop
        assert scheduler.is_over
        await asyncio.sleep(0)
        assert not scheduler.is_over

    asyncio.run(main())


def test_nothing_is_scheduled_without_waiting_work() -> None:
    async def main() -> None:
        scheduler = FairScheduler()
        scheduler.spend(0.001)
        for _ in range(3):
            await asyncio.sleep(0)
        assert not scheduler._is_renewing

    asyncio.run(main())


def test_during_block_priority_no_work_runs_and_new_work_waits() -> None:
    async def main() -> None:
        block_priority, log = BlockPriority(1e6), list[str]()
        scheduler = FairScheduler(turn_s=1e6, priority=block_priority)
        Worker(scheduler, log, "first", 1).wait()
        assert perf_counter() < scheduler.ends_at
        block_priority.begin()
        assert scheduler.is_over
        assert perf_counter() > scheduler.ends_at
        await asyncio.sleep(0)
        assert not scheduler.has_time()
        for _ in range(100):
            assert log == []
            await asyncio.sleep(0)
        block_priority.end()
        await until_nobody_waits(scheduler)
        assert log == ["first"]
        await asyncio.sleep(0)
        assert scheduler.has_time()

    asyncio.run(main())
