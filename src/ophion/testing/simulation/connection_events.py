"""Connection events of nodes, correct or not.

State machines treat a closed connection as a hint that a node is offline. Here the hint may be missing (a node dies and
its connections stay open), late, or false (a connection breaks for a while and messages arrive by relay). This module
has its own random source, so that it does not change the other faults of a seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import TYPE_CHECKING, Final

from ophion.consensus.bft.events import Connected, Disconnected
from ophion.testing.simulation.simulated_node import SimulatedMember

if TYPE_CHECKING:
    from ophion.testing.simulation.network import SimulatedNetwork

_NOTICED: Final = 0.6
"""Probability that a closed connection is noticed."""
_MAX_NOTICE_S: Final = 1.0


class ConnectionEvents:
    """Reports opened and closed connections to the state machines."""

    def __init__(self, world: SimulatedNetwork, seed: int) -> None:
        self._world = world
        self._rng = Random(f"links/{seed}")

    def up(self, member: SimulatedMember, others: Iterable[SimulatedMember]) -> None:
        """Connect a node and other nodes, in both directions."""
        for other in others:
            if other is not member and self._world.delivery.are_connected(member, other):
                self._notify(member, Connected(other.address), 0.0)
                self._notify(other, Connected(member.address), 0.0)

    def down(self, member: SimulatedMember, others: Iterable[SimulatedMember]) -> None:
        """Close the connections of a node. Only some of the other nodes notice."""
        for other in others:
            if other is not member:
                for one, event in ((member, Disconnected(other.address)), (other, Disconnected(member.address))):
                    if self._rng.random() < _NOTICED:
                        self._notify(one, event, self._rng.random() * _MAX_NOTICE_S)

    def flap(self, member: SimulatedMember, other: SimulatedMember) -> None:
        """Break a connection for a while; messages still arrive by relay."""
        self.down(member, (other,))
        back = self._world.now + _MAX_NOTICE_S + self._rng.random()
        self._world.at(back, lambda: self.up(member, (other,)))

    def _notify(self, member: SimulatedMember, event: Connected | Disconnected, delay_s: float) -> None:
        self._world.event_queue.add(self._world.now + delay_s, self._world.driver.handle, member, event)
