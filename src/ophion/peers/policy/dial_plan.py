"""`DialPlan`: which nodes to dial and when (networking.md 5.1, 5.2).

Static peers are redialled soon after a lost connection, and with growing delays after failed attempts. Discovered nodes
are dialled while the peer limit allows more peers. Discovered bootnodes and validators are dialled even above that
limit. Callers pass in the time, the connected nodes and the outcome of each attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from enum import Enum
from random import Random
from typing import Final

from msgspec import Struct

from ophion.peers.policy.addresses import is_public
from ophion.primitives.enode import Enode

STATIC_DELAYS: Final = (1.0, 5.0, 15.0, 30.0, 60.0)
"""Seconds before the next attempt to a static peer, by the number of consecutive failures."""
NEAR_DELAY_S: Final = 3.0
"""Maximum delay before the next dial of a static peer with a private address. Validators must reconnect within two
round timeouts.
"""
PAUSE_S: Final = 30.0
"""Minimum seconds between dials of a discovered node or of a public address. Other clients refuse faster attempts."""
LASTING_S: Final = 30.0
"""A connection that one side ends on purpose within this many seconds counts as a failed attempt."""
BRIEF_S: Final = 1.0
"""A connection that breaks within this many seconds counts as a failed attempt."""
_MAX_PAUSE_S: Final = 600.0
_MAX_FAILURES: Final = 5
_MAX_CANDIDATES: Final = 512
_JITTER: Final = 0.2


class DialOutcome(Enum):
    """How a dial attempt or a connection ended."""

    LOST = "an established connection ended"
    FAILED = "no connection, or a short one"
    FULL = "the remote node has too many peers"
    DUPLICATE = "already connected to the same node"


class _DialTarget(Struct):
    """A node to dial, with the time of the next attempt."""

    enode: Enode
    due: float
    failures: int = 0


class DialPlan:
    """Static and discovered nodes, each with the time of the next attempt."""

    def __init__(
        self, own_id: bytes, random: Random, is_member: Callable[[bytes], bool] = lambda node_id: False
    ) -> None:
        self._own_id = own_id
        self._random = random
        self._is_member = is_member
        self._static: dict[Enode, _DialTarget] = {}
        self._found: dict[bytes, _DialTarget] = {}

    # --- known nodes -----------------------------------------------------------------------------------

    def add_static(self, enode: Enode, now: float) -> bool:
        """Add a static peer. Returns False if the node is a static peer already, or is this node itself."""
        if enode in self._static or enode.node_id == self._own_id:
            return False
        self._static[enode] = _DialTarget(enode, now)
        return True

    def readdress(self, address: Callable[[Enode], Enode], now: float) -> None:
        """Update the addresses of static peers with host names. A peer with a new address becomes due immediately."""
        for enode, target in self._static.items():
            current = address(enode) if enode.host else enode
            if current != target.enode:
                target.enode, target.due, target.failures = current, now, 0

    def remove_static(self, enode: Enode) -> bool:
        """Remove a static peer. Returns False if the node was not a static peer."""
        return self._static.pop(enode, None) is not None

    def is_static(self, node_id: bytes) -> bool:
        """Whether a node is a static peer, at any address."""
        return any(enode.node_id == node_id for enode in self._static)

    def has_reserved_slot(self, node_id: bytes) -> bool:
        """Whether a node has a reserved slot, as a static peer, a bootnode or a validator."""
        return self.is_static(node_id) or self._is_member(node_id)

    def is_static_address(self, ip: str) -> bool:
        """Whether a static peer has this IP address."""
        return any(target.enode.ip == ip for target in self._static.values())

    @property
    def static_nodes(self) -> tuple[Enode, ...]:
        """Static peers, each at its current address."""
        return tuple(target.enode for target in self._static.values())

    def offer(self, enode: Enode, now: float) -> None:
        """Add a node that discovery has found alive."""
        if enode.node_id == self._own_id or not enode.tcp_port:
            return
        target = self._found.get(enode.node_id)
        if target is None:
            self._found[enode.node_id] = _DialTarget(enode, now)
            if len(self._found) > _MAX_CANDIDATES:
                # evict the oldest discovered node that is neither a bootnode nor a validator
                others = (found_id for found_id in self._found if not self._is_member(found_id))
                del self._found[next(others, enode.node_id)]
        else:
            target.enode = enode

    def forget(self, node_id: bytes) -> None:
        """Remove a discovered node from the plan."""
        self._found.pop(node_id, None)

    # --- dial schedule -----------------------------------------------------------------------------------

    def due(self, now: float, busy: Container[bytes], free: int) -> Iterator[Enode]:
        """Yield the nodes to dial now: static peers and validators that are due, and up to `free` other nodes."""
        chosen: set[bytes] = set()
        for target in tuple(self._static.values()):
            if (
                target.due <= now
                and target.enode.ip
                and target.enode.node_id not in busy
                and target.enode.node_id not in chosen
            ):
                chosen.add(target.enode.node_id)
                yield target.enode
        for target in sorted(self._found.values(), key=lambda target: target.due):
            node_id = target.enode.node_id
            if target.due > now:
                break
            if node_id in busy or node_id in chosen:
                continue
            if self._is_member(node_id):
                yield target.enode
            elif free > 0:
                free -= 1
                yield target.enode

    def next_due(self, busy: Container[bytes], free: int) -> float | None:
        """Return the time of the next dial, or None if no node becomes due before the plan or the connected peers
        change.
        """
        targets = [target for target in self._static.values() if target.enode.ip]
        targets += (target for target in self._found.values() if free > 0 or self._is_member(target.enode.node_id))
        return min((target.due for target in targets if target.enode.node_id not in busy), default=None)

    def ended(self, node_id: bytes, now: float, outcome: DialOutcome) -> None:
        """Record the end of a dial attempt, or of an inbound or outbound connection."""
        for target in self._static.values():
            if target.enode.node_id == node_id:
                target.due = now + self._static_delay(target, outcome)
        found = self._found.get(node_id)
        if found is None:
            return
        found.failures = found.failures + 1 if outcome is DialOutcome.FAILED else 0
        if found.failures >= _MAX_FAILURES:
            # forget the node, because discovery offers the node again once it responds
            del self._found[node_id]
        else:
            pause = min(PAUSE_S * 2 ** max(found.failures - 1, 0), _MAX_PAUSE_S)
            found.due = now + self._jittered(pause)

    def _static_delay(self, target: _DialTarget, outcome: DialOutcome) -> float:
        last = len(STATIC_DELAYS) - 1
        if outcome is DialOutcome.FAILED:
            step = min(target.failures, last)
            target.failures += 1
        elif outcome is DialOutcome.LOST:
            step = target.failures = 0
        else:
            step = 3 if outcome is DialOutcome.FULL else 1
        delay = STATIC_DELAYS[step]
        if target.enode.ip and is_public(target.enode.ip):
            delay = max(delay, PAUSE_S)
        elif outcome is DialOutcome.FAILED:
            delay = min(delay, NEAR_DELAY_S)
        return self._jittered(delay)

    def _jittered(self, seconds: float) -> float:
        """Add random jitter, so that two nodes do not keep dialling each other at the same time."""
        return seconds * (1 + _JITTER * (2 * self._random.random() - 1))
