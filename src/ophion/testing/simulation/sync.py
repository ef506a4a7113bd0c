"""Synchronisation of nodes that are behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ophion.testing.simulation.fault_plan import CALM
from ophion.testing.simulation.simulated_node import FinalBlock, SimulatedMember

if TYPE_CHECKING:
    from ophion.testing.simulation.network import SimulatedNetwork

SYNC_RETRY_S: Final = 1.0


class Syncing:
    """Fetches blocks for nodes that know of longer chains."""

    def __init__(self, world: SimulatedNetwork) -> None:
        self._world = world
        self._event_queue = world.event_queue

    def aim(self, member: SimulatedMember, height: int) -> None:
        """Set the target height of a node that is behind."""
        if height > member.height and height > member.target:
            if member.target <= member.height:
                self._event_queue.add(self._event_queue.now + CALM.max_delay_s, self._fetch, member, None)
            member.target = height

    def introduce(self, member: SimulatedMember, other: SimulatedMember) -> None:
        """Exchange the heights of two simulated nodes, as real nodes do when they connect."""
        are_there = member is not other and member.machine and other.machine
        if are_there and self._world.delivery.are_connected(member, other):
            self.aim(member, other.height)
            self.aim(other, member.height)

    def receive(self, member: SimulatedMember, block: FinalBlock) -> None:
        """Handle an announced block."""
        if member.machine is None or block.height <= member.height:
            return
        if block.height > member.height + 1:
            self.aim(member, block.height)
        elif self._world.driver.extend(member, block):
            self._world.driver.report_head(member)

    def _fetch(self, member: SimulatedMember, _payload: None) -> None:
        """Fetch blocks from a node with a longer chain, and repeat until the target is reached."""
        if member.machine is None or member.target <= member.height:
            return
        world = self._world
        better = [
            other
            for other in world.members
            if other.machine is not None
            and other.height > member.height
            and world.delivery.are_connected(member, other)
        ]
        if better:
            source = world.rng.choice(better)
            height = member.height
            for block in source.chain[height + 1 :]:
                if not world.driver.extend(member, block):
                    break
            if member.height > height:
                world.driver.report_head(member)
        if member.target > member.height:
            self._event_queue.add(self._event_queue.now + SYNC_RETRY_S, self._fetch, member, None)
