"""Answers that may be there at once: coroutines that begin in the turn in which they are made, and waiting for both."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def driven(started: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Any:
    """Run a coroutine up to its first wait: its result when it does not wait, otherwise a task for the rest."""
    try:
        first = started.send(None)
    except StopIteration as stop:
        return stop.value
    return loop.create_task(_resume(started, first))


async def awaited(answer: T | Awaitable[T]) -> T:
    """What is there already, or will be."""
    return await answer if isinstance(answer, Awaitable) else answer


@coroutine
def _resume(started: Coroutine[Any, Any, Any], waited_for: Any) -> Generator[Any, Any, Any]:
    """The rest of a coroutine that has been driven to its first wait, as something a task can run."""
    while True:
        try:
            sent = yield waited_for
        except GeneratorExit:
            started.close()  # which it may be already: what nobody waits for any more goes in any order
            raise
        except BaseException as error:  # noqa: BLE001  # cancellation travels into the handler
            advance = partial(started.throw, error)
        else:
            advance = partial(started.send, sent)
        # what was waited for, and what came of it, must not stay here: the traceback of an error knows this frame, and
        # only a search for cycles would free what the coroutine has held
        waited_for = None
        try:
            waited_for = advance()
        except StopIteration as stop:
            return stop.value
        finally:
            del advance
