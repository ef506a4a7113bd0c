"""Jobs that arrive while a batch runs form the next batch."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from ophion.runtime.batching import Batches
from ophion.runtime.thread_pools import InlineLane, LaneFull, ThreadLane


def test_what_arrives_meanwhile_is_done_together() -> None:
    gate, sizes = threading.Event(), []

    def work(pieces: Sequence[int]) -> list[int]:
        sizes.append(len(pieces))
        assert gate.wait(60)
        return [piece * 2 for piece in pieces]

    async def main() -> list[int]:
        lane = ThreadLane("test", 1, None)
        batches: Batches[int, int] = Batches(lane, work, most=5)
        tasks = [asyncio.create_task(batches.do(number)) for number in range(12)]
        await asyncio.sleep(0)
        gate.set()
        found = await asyncio.gather(*tasks)
        lane.close()
        return found

    assert asyncio.run(main()) == [number * 2 for number in range(12)]
    assert sizes == [1, 5, 5, 1]


def test_failures_belong_to_their_pieces() -> None:
    def work(pieces: Sequence[int]) -> list[int]:
        return [ValueError(str(piece)) if piece % 2 else piece for piece in pieces]  # type: ignore[misc]

    async def main() -> None:
        batches: Batches[int, int] = Batches(InlineLane("test"), work)
        assert await batches.do(2) == 2
        with pytest.raises(ValueError, match="3"):
            await batches.do(3)

    asyncio.run(main())


def test_a_full_lane_is_reported_to_the_caller() -> None:
    gate = threading.Event()

    async def main() -> None:
        lane = ThreadLane("test", 1, 1)
        blocking = lane.submit(lambda: gate.wait(60))
        batches: Batches[int, int] = Batches(lane, list)
        with pytest.raises(LaneFull):
            await batches.do(1)
        gate.set()
        await blocking
        assert await batches.do(2) == 2
        lane.close()

    asyncio.run(main())


def test_a_failed_batch_fails_all_its_jobs_and_later_ones_run() -> None:
    calls = []

    def work(pieces: Sequence[int]) -> list[int]:
        calls.append(pieces)
        if len(calls) == 1:
            raise OSError("no")
        return list(pieces)

    async def main() -> None:
        batches: Batches[int, int] = Batches(InlineLane("test"), work)
        with pytest.raises(OSError, match="no"):
            await batches.do(1)
        assert await batches.do(2) == 2

    asyncio.run(main())


def test_no_job_waits_for_ever_if_the_lane_is_full_and_one_was_cancelled() -> None:
    gate = threading.Event()

    def work(pieces: Sequence[int]) -> list[int]:
        assert gate.wait(60)
        return list(pieces)

    async def main() -> None:
        lane = ThreadLane("test", 1, 1)
        batches: Batches[int, int] = Batches(lane, work, most=2)
        first = batches.submit(0)
        others = [batches.submit(number) for number in range(1, 5)]
        others[0].cancel()
        lane._slots.limit = 0
        gate.set()
        assert await asyncio.wait_for(first, 60) == 0, "it was done when there was a place"
        for other in others[1:]:
            with pytest.raises(LaneFull):
                await asyncio.wait_for(other, 60)
        lane._slots.limit = 1
        assert await batches.do(9) == 9
        lane.close()

    asyncio.run(main())
