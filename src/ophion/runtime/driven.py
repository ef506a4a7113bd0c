"""Coroutines that begin at once, in the turn of the loop in which they are made."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from functools import partial
from types import coroutine
from typing import Any


def driven(started: Coroutine[Any, Any, Any], loop: asyncio.AbstractEventLoop) -> Any:
    """Run a coroutine up to its first wait: its result when it does not wait, otherwise a task for the rest."""
    try:
        awaited = started.send(None)
    except StopIteration as stop:
        return stop.value
    return loop.create_task(_resume(started, awaited))


@coroutine
def _resume(started: Coroutine[Any, Any, Any], awaited: Any) -> Generator[Any, Any, Any]:
    """The rest of a coroutine that has been driven to its first wait, as something a task can run."""
    while True:
        try:
            sent = yield awaited
        except GeneratorExit:
            started.close()  # which it may be already: what nobody waits for any more goes in any order
            raise
        except BaseException as error:  # noqa: BLE001  # cancellation travels into the handler
            advance = partial(started.throw, error)
        else:
            advance = partial(started.send, sent)
        # what was waited for, and what came of it, must not stay here: the traceback of an error knows this frame, and
        # only a search for cycles would free what the coroutine has held
        awaited = None
        try:
            awaited = advance()
        except StopIteration as stop:
            return stop.value
        finally:
            del advance
