"""Tests jobs of many peers in one lane (worker threads)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.runtime.thread_pools import DeadlineExceeded, InlineLane, ThreadLane


def run(scenario: Callable[[FairWorkerQueue[str], threading.Event, list[str]], Coroutine[Any, Any, None]]) -> list[str]:
    """Run a scenario with a lane of one thread. The thread is busy until the event is set. Returns the job names in the
    order of execution.
    """
    log: list[str] = []

    async def story() -> None:
        lane, free = ThreadLane("peers", 1, None), threading.Event()
        try:
            peers = FairWorkerQueue[str](lane, lambda owner: owner.startswith("member"))
            busy = asyncio.create_task(peers.run("other", free.wait))
            await asyncio.sleep(0)
            await scenario(peers, free, log)
            await busy
        finally:
            free.set()
            lane.close()

    asyncio.run(story())
    return log


def test_a_member_does_not_wait_for_the_jobs_of_unknown_peers() -> None:
    async def scenario(lane: FairWorkerQueue[str], free: threading.Event, log: list[str]) -> None:
        owners = [f"unknown {number % 3}" for number in range(9)] + ["member"]
        jobs = [asyncio.create_task(lane.run(owner, lambda owner=owner: log.append(owner))) for owner in owners]
        await asyncio.sleep(0)
        free.set()
        await asyncio.gather(*jobs)

    assert run(scenario) == ["member"] + ["unknown 0", "unknown 1", "unknown 2"] * 3


def test_members_leave_a_share_to_unknown_peers() -> None:
    async def scenario(lane: FairWorkerQueue[str], free: threading.Event, log: list[str]) -> None:
        owners = ["member"] * 20 + ["unknown"]
        jobs = [asyncio.create_task(lane.run(owner, lambda owner=owner: log.append(owner))) for owner in owners]
        await asyncio.sleep(0)
        free.set()
        await asyncio.gather(*jobs)

    assert run(scenario).index("unknown") == 8


def test_a_job_that_waits_beyond_its_deadline_is_never_run() -> None:
    async def scenario(lane: FairWorkerQueue[str], free: threading.Event, log: list[str]) -> None:
        with pytest.raises(DeadlineExceeded):
            await lane.run("unknown", lambda: log.append("late"), 0.01)
        free.set()
        await lane.run("unknown", lambda: log.append("next"))

    assert run(scenario) == ["next"]


def test_errors_and_results_reach_their_caller() -> None:
    async def scenario(lane: FairWorkerQueue[str], free: threading.Event, log: list[str]) -> None:
        free.set()
        assert await lane.run("unknown", lambda: 7) == 7
        with pytest.raises(ZeroDivisionError):
            await lane.run("member", lambda: 1 // 0)

    run(scenario)


def test_without_threads_a_job_runs_at_once() -> None:
    lane = FairWorkerQueue[str](InlineLane("peers"), lambda owner: True)
    assert asyncio.run(lane.run("member", lambda: 7)) == 7
