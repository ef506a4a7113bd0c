"""If all slots are in use, single requests fail, and requests of batches wait."""

from __future__ import annotations

import asyncio

import pytest

from ophion.runtime.slots import Slots


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


def test_single_requests_take_all_slots_and_no_more() -> None:
    slots = Slots(2)
    assert [slots.enter(), slots.enter(), slots.enter()] == [True, True, False]
    slots.leave()
    assert slots.enter()


def test_batches_use_half_of_the_slots_in_the_order_of_their_arrival() -> None:
    async def story() -> None:
        slots, order = Slots(4), list[int]()

        async def member(number: int) -> None:
            await slots.wait()
            order.append(number)

        members = [asyncio.create_task(member(number)) for number in range(4)]
        await settle()
        assert (order, slots.used) == ([0, 1], 2)
        assert [slots.enter(), slots.enter(), slots.enter()] == [True, True, False]
        slots.leave()  # a single request leaves its slot, but waiting batches already use their half of the slots
        await settle()
        assert order == [0, 1]
        slots.leave(in_batch=True)
        slots.leave(in_batch=True)
        await asyncio.gather(*members)
        assert (order, slots.used) == ([0, 1, 2, 3], 3)

    asyncio.run(story())


def test_a_waiting_batch_is_served_before_new_single_requests() -> None:
    async def story() -> None:
        slots = Slots(2)
        assert slots.enter()
        assert slots.enter()
        waiting = asyncio.create_task(slots.wait())
        await settle()
        slots.leave()
        assert not slots.enter()
        await waiting

    asyncio.run(story())


@pytest.mark.parametrize("is_admitted", [False, True])
def test_a_cancelled_wait_leaves_nothing_behind(is_admitted: bool) -> None:
    async def story() -> None:
        slots = Slots(1)
        assert slots.enter()
        waiting = asyncio.create_task(slots.wait())
        await settle()
        if is_admitted:
            slots.leave()  # the free slot goes to the waiting task, which has not run yet
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if not is_admitted:
            slots.leave()
        assert slots.used == 0
        await asyncio.wait_for(slots.wait(), 5)

    asyncio.run(story())


def test_a_slot_that_becomes_free_just_after_a_cancellation_is_not_lost() -> None:
    async def story() -> None:
        slots = Slots(1)
        assert slots.enter()
        first, second = asyncio.create_task(slots.wait()), asyncio.create_task(slots.wait())
        await settle()
        first.cancel()
        slots.leave()  # a slot becomes free after the cancellation, but before the cancelled task runs
        with pytest.raises(asyncio.CancelledError):
            await first
        await asyncio.wait_for(second, 5)
        assert slots.used == 1
        slots.leave(in_batch=True)
        assert slots.used == 0

    asyncio.run(story())
