"""Waits for other tasks or processes; a timeout is a failure that names the condition."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def until(condition: Callable[[], object], limit_s: float = 60.0) -> None:
    """Wait until other tasks make a condition true."""
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110  # the condition has no event to wait for
            await asyncio.sleep(0.001)


def wait_for(condition: Callable[[], T], limit_s: float = 180.0, what: str = "that") -> T:
    """Wait until other processes make a condition true; return its value."""
    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come within {limit_s:g} s")
        time.sleep(0.02)
    return found
