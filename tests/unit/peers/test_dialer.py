"""Tests dial attempts in progress. Other files test the dial plan and whole connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from ophion.peers.dialer import Dialer
from ophion.peers.peer_table import Peers
from ophion.peers.policy.dial_plan import DialPlan
from ophion.primitives.enode import Enode
from ophion.runtime.clock import SystemClock

NODES = [Enode(bytes([number]) * 64, "127.0.0.1", 30000 + number, 0) for number in range(1, 31)]


class Calls:
    """Dial attempts that last until a test ends them."""

    def __init__(self) -> None:
        self.open: dict[bytes, asyncio.Future[bool]] = {}
        self.most = 0

    async def connect(self, enode: Enode) -> bool:
        future = self.open[enode.node_id] = asyncio.get_running_loop().create_future()
        self.most = max(self.most, len(self.open))
        try:
            return await future
        finally:
            del self.open[enode.node_id]


Story = Callable[[Dialer, DialPlan, Calls], Awaitable[None]]


def play(story: Story, max_peers: int = 25, may_dial: Callable[[Enode], bool] = lambda enode: True) -> None:
    async def whole() -> None:
        clock, calls = SystemClock(), Calls()
        plan = DialPlan(b"\0" * 64, Random(1))
        dialler = Dialer(plan, Peers(), max_peers, clock, may_dial, calls.connect)
        async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
            running = tasks.create_task(dialler.run(tasks))
            await story(dialler, plan, calls)
            running.cancel()
            for future in tuple(calls.open.values()):
                future.set_result(True)

    asyncio.run(whole())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  # the time limit of the test bounds this loop
        await asyncio.sleep(0.001)


def add_all(dialler: Dialer, plan: DialPlan) -> None:
    for enode in NODES:
        plan.add_static(enode, SystemClock().monotonic())
    dialler.wake()


def test_attempts_are_bounded_and_arrivals_free_slots() -> None:
    async def story(dialler: Dialer, plan: DialPlan, calls: Calls) -> None:
        add_all(dialler, plan)
        await until(lambda: len(dialler) == 16)
        assert all(node_id in dialler for node_id in calls.open)
        for enode in NODES[:16]:
            plan.remove_static(enode)
            dialler.arrived(enode.node_id)
        await until(lambda: len(calls.open) == 30)
        assert len(dialler) == 14, "connections that stand are no attempts"

    play(story)


def test_hanging_dials_do_not_delay_nodes_with_a_reserved_slot() -> None:
    async def story(dialler: Dialer, plan: DialPlan, calls: Calls) -> None:
        for enode in NODES[:20]:
            plan.offer(enode, SystemClock().monotonic())
        dialler.wake()
        await until(lambda: len(dialler) == 16)
        plan.add_static(NODES[25], SystemClock().monotonic())
        dialler.wake()
        await until(lambda: NODES[25].node_id in calls.open)
        assert len(dialler) == 17
        assert dialler._pause() is None, "who waits for a place is no reason to look again and again"

    play(story)


def test_a_failed_attempt_frees_its_slot_and_is_retried_later() -> None:
    async def story(dialler: Dialer, plan: DialPlan, calls: Calls) -> None:
        plan.add_static(NODES[0], SystemClock().monotonic())
        dialler.wake()
        await until(lambda: len(calls.open) == 1)
        calls.open[NODES[0].node_id].set_result(False)
        await until(lambda: not len(dialler))
        assert NODES[0].node_id not in dialler
        await until(lambda: len(calls.open) == 1)

    play(story)


def test_who_may_not_be_dialled_is_not() -> None:
    async def story(dialler: Dialer, plan: DialPlan, calls: Calls) -> None:
        add_all(dialler, plan)
        await until(lambda: len(calls.open) == 1)
        assert list(calls.open) == [NODES[4].node_id]

    play(story, may_dial=lambda enode: enode == NODES[4])


def test_capacity_counts_open_dials() -> None:
    async def story(dialler: Dialer, plan: DialPlan, calls: Calls) -> None:
        for enode in NODES:
            plan.offer(enode, SystemClock().monotonic())
        assert dialler.capacity == 3
        dialler.wake()
        await until(lambda: len(calls.open) == 3)
        assert dialler.capacity == 0
        await asyncio.sleep(0.02)
        assert calls.most == 3

    play(story, max_peers=3)
