"""Tests coroutines that start at once."""

from __future__ import annotations

import asyncio
import gc
import weakref
from contextlib import suppress

import pytest

from ophion.runtime.eager_coroutine import _resume, awaited, driven


def test_one_that_does_not_wait_is_finished_at_once() -> None:
    async def quick() -> int:
        return 3

    async def story() -> None:
        assert driven(quick(), asyncio.get_running_loop()) == 3

    asyncio.run(story())


def test_an_answer_is_awaited_where_it_is_not_there_yet() -> None:
    async def later() -> bytes | None:
        await asyncio.sleep(0)
        return b"later"

    async def story() -> None:
        assert [await awaited(answer) for answer in (b"now", None, later())] == [b"now", None, b"later"]

    asyncio.run(story())


def test_one_that_waits_has_begun_and_becomes_a_task() -> None:
    steps: list[str] = []

    async def slow() -> int:
        steps.append("begun")
        await asyncio.sleep(0)
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            steps.append("cancelled")
            raise
        return 3

    async def story() -> None:
        task = driven(slow(), asyncio.get_running_loop())
        assert steps == ["begun"]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["begun", "cancelled"]

    asyncio.run(story())


def test_errors_travel_both_ways() -> None:
    async def fails(waits: bool) -> None:
        if waits:
            await asyncio.sleep(0)
        raise ValueError("a bug")

    async def story() -> None:
        with pytest.raises(ValueError, match="a bug"):
            driven(fails(False), asyncio.get_running_loop())
        with pytest.raises(ValueError, match="a bug"):
            await driven(fails(True), asyncio.get_running_loop())

    asyncio.run(story())


@pytest.mark.parametrize("is_closed", [False, True])
def test_an_abandoned_coroutine_ends_without_a_warning(is_closed: bool) -> None:
    """The garbage collector may close the coroutine and its wrapper in any order."""
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("ended")

    async def story() -> None:
        started = slow()
        resumed = _resume(started, started.send(None))
        next(resumed)
        if is_closed:
            started.close()
        resumed.close()
        assert ended == ["ended"]

    asyncio.run(story())


def test_an_error_that_was_waited_for_leaves_nothing_to_be_collected() -> None:
    """A failed coroutine is freed at once.

    Otherwise its objects would stay until the next garbage collection.
    """

    class Held:
        pass

    references: list[weakref.ref[Held]] = []

    async def fails(errors: list[asyncio.Future[None]]) -> None:
        held = Held()
        references.append(weakref.ref(held))
        with suppress(OSError):
            await errors.pop()

    async def story() -> None:
        error = asyncio.get_running_loop().create_future()
        task = driven(fails([error]), asyncio.get_running_loop())
        error.set_exception(OSError("the other end has gone"))
        del error
        await task
        del task
        await asyncio.sleep(0)
        assert [one() for one in references] == [None]

    gc.disable()
    try:
        asyncio.run(story())
    finally:
        gc.enable()
