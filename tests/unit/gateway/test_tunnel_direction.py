"""Tests one direction of a tunnel in time slices."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from functools import wraps

from ophion.gateway.tunnel_direction import TunnelDirection
from ophion.runtime.fair_scheduler import FairScheduler
from ophion.testing.memory_transport import connect_in_memory

PIECE = b"x" * 65_536


def on_a_loop(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(test())  # type: ignore[arg-type]

    return run


class Tunnel:
    """One direction, and the bytes that it has forwarded."""

    def __init__(self, scheduler: FairScheduler, order: list[Tunnel] | None = None) -> None:
        self.source, _ = connect_in_memory(asyncio.get_running_loop(), asyncio.Protocol(), asyncio.Protocol())
        self.passed: list[bytes] = []
        self.memory_changed = 0
        self._order = [] if order is None else order
        self.flow = TunnelDirection(scheduler, self.source, self._write, self._report_memory)

    def _write(self, data: bytes) -> None:
        self.passed.append(data)
        self._order.append(self)

    def _report_memory(self) -> None:
        self.memory_changed += 1


async def all_had_theirs(scheduler: FairScheduler) -> None:
    while len(scheduler):  # noqa: ASYNC110  # the tested code gives no event
        await asyncio.sleep(0)


@on_a_loop
async def test_many_waiting_tunnels_do_not_forward_everything_in_one_step() -> None:
    scheduler = FairScheduler()
    crowd = [Tunnel(scheduler) for _ in range(4000)]
    for one in crowd:
        one.flow.receive(PIECE)
    passed = [one for one in crowd if one.passed]
    assert 0 < len(passed) < 400, "the rest waits"
    late = [one for one in crowd if not one.passed]
    assert all(one.flow.held_bytes == len(PIECE) and not one.source.is_reading() and one.memory_changed for one in late)
    assert all(one.source.is_reading() for one in passed)
    await all_had_theirs(scheduler)
    assert all(one.passed == [PIECE] and one.source.is_reading() and not one.flow.held_bytes for one in crowd)


@on_a_loop
async def test_who_has_passed_little_comes_before_who_has_passed_much() -> None:
    scheduler, order = FairScheduler(turn_s=1e6), list[Tunnel]()
    busy, quiet = Tunnel(scheduler, order), Tunnel(scheduler, order)
    for _ in range(700):
        busy.flow.receive(PIECE)
    order.clear()
    scheduler.spend(math.inf)
    for one in (busy, quiet):
        one.flow.receive(b"a few bytes")
    await all_had_theirs(scheduler)
    assert order == [quiet, busy]


@on_a_loop
async def test_waiting_bytes_survive_the_end_of_the_sender_but_not_of_the_receiver() -> None:
    scheduler = FairScheduler()
    scheduler.spend(1)
    ended, alone = Tunnel(scheduler), Tunnel(scheduler)
    for one in (ended, alone):
        one.flow.receive(b"the last word")
        one.flow.receive(b", and more")
    ended.flow.flush()
    assert ended.passed == [b"the last word, and more"]
    alone.flow.end()
    await all_had_theirs(scheduler)
    assert alone.passed == []


@on_a_loop
async def test_nothing_is_read_while_the_other_end_takes_nothing() -> None:
    tunnel = Tunnel(FairScheduler())
    tunnel.flow.hold(True)
    assert not tunnel.source.is_reading()
    tunnel.flow.hold(False)
    assert tunnel.source.is_reading()
