"""Requests wait while the event loop works on a block, but only up to a time limit."""

from __future__ import annotations

from threading import Thread, current_thread
from time import perf_counter, sleep

from ophion.runtime.block_priority import MAX_PRIORITY_S, BlockPriority

LONG_S = 1e6
"""A time in seconds that is longer than any interruption of this process."""


def test_it_is_on_between_beginning_and_end() -> None:
    block_priority = BlockPriority(LONG_S)
    assert not block_priority.is_on
    block_priority.begin()
    assert block_priority.is_on
    block_priority.end()
    assert not block_priority.is_on


def test_a_priority_that_is_not_ended_expires() -> None:
    block_priority = BlockPriority()
    block_priority.begin()
    over = perf_counter() + MAX_PRIORITY_S
    while perf_counter() <= over:
        sleep(MAX_PRIORITY_S)
    assert not block_priority.is_on


def test_the_callback_runs_in_the_thread_that_begins() -> None:
    block_priority, calls = BlockPriority(LONG_S), list[tuple[bool, Thread]]()
    block_priority.begun = lambda: calls.append((block_priority.is_on, current_thread()))
    thread = Thread(target=block_priority.begin)
    thread.start()
    thread.join()
    assert calls == [(True, thread)]
