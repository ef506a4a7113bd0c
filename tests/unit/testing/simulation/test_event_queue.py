"""Actions run in the order of their times."""

from __future__ import annotations

from ophion.consensus.bft.qbft_messages import Qbft
from ophion.testing.simulation.driver import NetworkSettings
from ophion.testing.simulation.event_queue import EventQueue
from ophion.testing.simulation.network import SimulatedNetwork


def test_things_are_done_by_time_and_then_in_the_order_of_putting_down() -> None:
    member = SimulatedNetwork(NetworkSettings(Qbft(), 1)).members[0]
    event_queue = EventQueue()
    done: list[tuple[str, float, int]] = []
    numbers = {
        name: event_queue.add(
            at, lambda _member, name: done.append((name, event_queue.now, event_queue.current)), member, name
        )
        for name, at in (("late", 3.0), ("first", 1.0), ("second", 1.0), ("never", 9.0))
    }
    while event_queue.step(5.0):
        pass
    assert done == [
        ("first", 1.0, numbers["first"]),
        ("second", 1.0, numbers["second"]),
        ("late", 3.0, numbers["late"]),
    ]
    assert (event_queue.now, event_queue.steps) == (3.0, 3)
