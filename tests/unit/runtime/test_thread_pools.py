"""Lanes: jobs run outside of the loop, queues have limits, deadlines include the time in the queue."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from ophion.native.executor import BlockEnv, CallRequest, ChainRules, call, genesis_state
from ophion.native.store import open_store
from ophion.runtime.slots import WAITS_FOR_SLOT
from ophion.runtime.thread_pools import DeadlineExceeded, InlineLanes, LaneFull, ThreadLane, ThreadLanes


def blocked() -> tuple[Callable[[], None], threading.Event]:
    """Return a job that waits until the event is set, and the event."""
    gate = threading.Event()
    return (lambda: gate.wait(5) and None), gate


def test_a_job_runs_in_a_thread_named_after_its_lane() -> None:
    async def story() -> str:
        lane = ThreadLane("build", 1, None)
        try:
            return await lane.run(lambda: threading.current_thread().name)
        finally:
            lane.close()

    assert asyncio.run(story()).startswith("build")


def test_jobs_of_a_lane_with_one_thread_run_in_order() -> None:
    async def story() -> list[int]:
        lane = ThreadLane("write", 1, None)
        done: list[int] = []
        await asyncio.gather(*(lane.run(lambda number=number: done.append(number)) for number in range(20)))
        lane.close()
        return done

    assert asyncio.run(story()) == list(range(20))


def test_an_error_of_a_job_reaches_the_caller() -> None:
    async def story() -> None:
        lane = ThreadLane("read", 1, 4)
        try:
            with pytest.raises(ZeroDivisionError):
                await lane.run(lambda: 1 // 0)
            assert lane.waiting == 0
        finally:
            lane.close()

    asyncio.run(story())


def test_a_full_lane_refuses_instead_of_queueing() -> None:
    async def story() -> None:
        lane = ThreadLane("read", 1, 2)
        job, gate = blocked()
        waiting = [lane.submit(job), lane.submit(job)]
        with pytest.raises(LaneFull) as refused:
            lane.submit(job)
        assert (refused.value.lane, refused.value.limit) == ("read", 2)
        gate.set()
        await asyncio.gather(*waiting)
        assert await lane.run(lambda: 5) == 5
        assert (lane.submitted, lane.rejected, lane.waiting) == (3, 1, 0)
        lane.close()

    asyncio.run(story())


def test_a_deadline_covers_the_time_in_the_queue() -> None:
    async def story() -> None:
        lane = ThreadLane("read", 1, 8)
        job, gate = blocked()
        first = lane.submit(job)
        ran: list[int] = []
        with pytest.raises(DeadlineExceeded, match="Timeout expired"):
            await lane.run(lambda: ran.append(1), deadline_s=0.01)
        gate.set()
        await first
        await lane.run(lambda: None)
        assert ran == []
        assert lane.waiting == 0
        lane.close()

    asyncio.run(story())


def test_closing_waits_for_the_running_job() -> None:
    async def story() -> None:
        lanes = ThreadLanes()
        job, gate = blocked()
        running = lanes.write.submit(job)
        asyncio.get_running_loop().call_later(0.01, gate.set)
        await running
        lanes.close()

    asyncio.run(story())


def test_inline_lanes_run_in_the_calling_thread() -> None:
    async def story() -> None:
        lanes = InlineLanes()
        caller = threading.get_ident()
        assert await lanes.read.run(threading.get_ident) == caller
        assert await lanes.build.submit(threading.get_ident) == caller
        with pytest.raises(ZeroDivisionError):
            await lanes.write.submit(lambda: 1 // 0)
        lanes.close()

    asyncio.run(story())


ENDLESS = bytes.fromhex("5b5f56")
CONTRACT = b"\x99" * 20


def test_a_running_call_ends_when_its_client_has_gone(tmp_path: Path) -> None:
    """The lane has one thread, so the next job runs only after the cancelled call has ended."""
    state = genesis_state(open_store(tmp_path), [(CONTRACT, 0, 0, ENDLESS, [])]).state
    env = BlockEnv(
        rules=ChainRules(chain_id=1),
        fork="shanghai",
        number=1,
        timestamp=1,
        beneficiary=bytes(20),
        gas_limit=2**62,
        difficulty=0,
        mix_hash=bytes(32),
        base_fee=0,
        parent_hash=bytes(32),
    )
    request = CallRequest(sender=bytes(20), to=CONTRACT, gas=2**60)

    async def story() -> str:
        lane = ThreadLane("read", 1, None, is_abortable=True)
        running = asyncio.create_task(lane.run(lambda: call(state, env, request, (), 600.0)))
        await asyncio.sleep(0.05)
        running.cancel()
        answer = await lane.run(lambda: "free", 60.0)
        lane.close()
        return answer

    assert asyncio.run(story()) == "free"


def test_a_member_of_a_batch_waits_for_a_full_lane_within_its_deadline() -> None:
    async def story() -> None:
        lane = ThreadLane("trace", 1, 2)
        job, gate = blocked()
        running = [lane.submit(job), lane.submit(job)]
        WAITS_FOR_SLOT.set(True)
        members = [asyncio.create_task(lane.run(lambda number=number: number)) for number in range(5)]  # type: ignore[misc]
        with pytest.raises(DeadlineExceeded):
            await lane.run(lambda: 5, deadline_s=0.01)
        gate.set()
        assert await asyncio.gather(*members) == list(range(5))
        await asyncio.gather(*running)
        assert (lane.rejected, lane.waiting, lane.submitted) == (0, 0, 7)
        lane.close()

    asyncio.run(story())
