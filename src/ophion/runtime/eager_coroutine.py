"""Runs coroutines eagerly. A coroutine that finishes without waiting needs no task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def driven(started: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Any:
    """Run a coroutine up to its first wait. Returns its result if it is done, else a task that continues it."""
    try:
        first = started.send(None)
    except StopIteration as stop:
        return stop.value
    return loop.create_task(_resume(started, first))


async def awaited(answer: T | Awaitable[T]) -> T:
    """Return a value, or the result of an awaitable."""
    return await answer if isinstance(answer, Awaitable) else answer


@coroutine
def _resume(started: Coroutine[Any, Any, Any], waited_for: Any) -> Generator[Any, Any, Any]:
    """Continue a started coroutine after its first wait. Runs in a task."""
    while True:
        try:
            sent = yield waited_for
        except GeneratorExit:
            started.close()  # the coroutine may already be closed, because abandoned coroutines end in any order
            raise
        except BaseException as error:  # noqa: BLE001  # the handler gets the error
            advance = partial(started.throw, error)
        else:
            advance = partial(started.send, sent)
        # clear the reference, because an exception that refers to this frame would keep the object alive
        waited_for = None
        try:
            waited_for = advance()
        except StopIteration as stop:
            return stop.value
        finally:
            del advance
