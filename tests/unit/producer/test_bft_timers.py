"""If the clock changes, block timers follow the clock and round timers do not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ophion.consensus.bft.events import BftEvent, BlockTimer, RoundTimer, SetTimer, TimerKind
from ophion.producer.bft_timers import BftTimers
from ophion.runtime.clock import ManualClock
from ophion.testing.virtual_loop import run_virtually


def block(at: float) -> SetTimer:
    return SetTimer(TimerKind.BLOCK, at, BlockTimer(1))


def round_(at: float) -> SetTimer:
    return SetTimer(TimerKind.ROUND, at, RoundTimer(1, 0))


def run_story(story: Callable[[BftTimers, ManualClock], Awaitable[None]]) -> list[tuple[BftEvent, float]]:
    """Return the expired timers, and the seconds after which each timer expired."""
    clock = ManualClock()
    expired: list[tuple[BftEvent, float]] = []
    timers = BftTimers(clock, lambda event: expired.append((event, round(clock.monotonic(), 2))))

    async def run() -> None:
        await story(timers, clock)

    run_virtually(run(), clock)
    return expired


def test_both_expire_at_their_time_and_at_once_when_it_has_passed() -> None:
    async def story(timers: BftTimers, clock: ManualClock) -> None:
        timers.set(block(clock.now() + 3.5))
        timers.set(round_(clock.now() + 2.0))
        await asyncio.sleep(4)
        timers.set(block(clock.now() - 7.0))
        await asyncio.sleep(1)

    assert run_story(story) == [(RoundTimer(1, 0), 2.0), (BlockTimer(1), 3.5), (BlockTimer(1), 4.0)]


def test_a_timer_that_is_set_again_or_cancelled_does_not_expire() -> None:
    async def story(timers: BftTimers, clock: ManualClock) -> None:
        timers.set(round_(clock.now() + 1.0))
        timers.set(round_(clock.now() + 2.0))
        timers.set(block(clock.now() + 1.0))
        timers.cancel(TimerKind.BLOCK)
        timers.cancel(TimerKind.BLOCK)
        await asyncio.sleep(3)
        timers.set(round_(clock.now() + 1.0))
        timers.set(block(clock.now() + 1.0))
        timers.cancel_all()
        await asyncio.sleep(3)

    assert run_story(story) == [(RoundTimer(1, 0), 2.0)]


def test_a_clock_that_is_set_back_delays_the_block_and_not_the_round() -> None:
    async def story(timers: BftTimers, clock: ManualClock) -> None:
        timers.set(block(clock.now() + 2.0))
        timers.set(round_(clock.now() + 2.0))
        await asyncio.sleep(1)
        clock.wall -= 10
        await asyncio.sleep(20)

    assert run_story(story) == [(RoundTimer(1, 0), 2.0), (BlockTimer(1), 12.0)]


def test_a_clock_that_is_set_forward_hastens_the_block_and_not_the_round() -> None:
    async def story(timers: BftTimers, clock: ManualClock) -> None:
        timers.set(block(clock.now() + 60.0))
        timers.set(round_(clock.now() + 60.0))
        await asyncio.sleep(1.5)
        clock.wall += 100
        await asyncio.sleep(70)

    assert run_story(story) == [(BlockTimer(1), 2.0), (RoundTimer(1, 0), 60.0)]
