"""`DialPlan`: whom to dial and when (networking.md 5.1, 5.2).

Static peers are dialled until they are here, soon after a loss and ever more rarely after failures. What discovery
finds is dialled while there is room for more peers; members, who make the blocks of the chain, have their place
whatever others do. The plan knows neither sockets nor clocks: it is told what time it is, who is busy and how attempts
ended.
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
"""Seconds before the next attempt after so many failures in a row."""
NEAR_DELAY_S: Final = 3.0
"""Most of that in a private network: when a cable is back, validators must meet again within a time-out or two."""
PAUSE_S: Final = 30.0
"""Between attempts at a discovered peer, and between any at a public address: clients there refuse more."""
LASTING_S: Final = 30.0
"""A connection that lived this long was a success; what was ended earlier on purpose counts as a failed attempt."""
BRIEF_S: Final = 1.0
"""The same where nobody ended it: a cable that is pulled every few seconds is no reason to dial more rarely."""
_LONGEST_PAUSE_S: Final = 600.0
_GIVE_UP_AFTER: Final = 5
_MAX_CANDIDATES: Final = 512
_JITTER: Final = 0.2


class Outcome(Enum):
    """How an attempt, or the connection it led to, ended."""

    LOST = "a connection that had lasted"
    FAILED = "no connection, or one that did not last"
    FULL = "the other side has no room"
    DUPLICATE = "another connection with the same node is there"


class _Aim(Struct):
    """A node to be dialled."""

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
        self._static: dict[Enode, _Aim] = {}
        self._found: dict[bytes, _Aim] = {}

    # --- who -----------------------------------------------------------------------------------------

    def add_static(self, enode: Enode, now: float) -> bool:
        """Keep a connection to this node from now on; False where that is so, or it is ourselves."""
        if enode in self._static or enode.node_id == self._own_id:
            return False
        self._static[enode] = _Aim(enode, now)
        return True

    def remove_static(self, enode: Enode) -> bool:
        """Stop that; False where it was not so."""
        return self._static.pop(enode, None) is not None

    def is_static(self, node_id: bytes) -> bool:
        """Whether a connection with this node is to be kept, whoever made it."""
        return any(enode.node_id == node_id for enode in self._static)

    def has_place(self, node_id: bytes) -> bool:
        """Whether there is always room for this node: strangers must not be able to take it."""
        return self.is_static(node_id) or self._is_member(node_id)

    def is_static_address(self, ip: str) -> bool:
        """Whether a static peer lives there."""
        return any(enode.ip == ip for enode in self._static)

    @property
    def statics(self) -> tuple[Enode, ...]:
        return tuple(self._static)

    def offer(self, enode: Enode, now: float) -> None:
        """Discovery has seen this node alive."""
        if enode.node_id == self._own_id or not enode.tcp_port:
            return
        aim = self._found.get(enode.node_id)
        if aim is None:
            self._found[enode.node_id] = _Aim(enode, now)
            if len(self._found) > _MAX_CANDIDATES:
                # the oldest, and no member for the sake of a stranger
                others = (found_id for found_id in self._found if not self._is_member(found_id))
                del self._found[next(others, enode.node_id)]
        else:
            aim.enode = enode

    def forget(self, node_id: bytes) -> None:
        """Do not dial what discovery said about this node."""
        self._found.pop(node_id, None)

    # --- when ----------------------------------------------------------------------------------------

    def due(self, now: float, busy: Container[bytes], room: int) -> Iterator[Enode]:
        """Whom to dial now: every static peer whose time has come, and others while there is room for them."""
        chosen: set[bytes] = set()
        for aim in tuple(self._static.values()):
            if aim.due <= now and aim.enode.node_id not in busy and aim.enode.node_id not in chosen:
                chosen.add(aim.enode.node_id)
                yield aim.enode
        for aim in sorted(self._found.values(), key=lambda aim: aim.due):
            node_id = aim.enode.node_id
            if aim.due > now:
                break
            if node_id in busy or node_id in chosen:
                continue
            if self._is_member(node_id):
                yield aim.enode
            elif room > 0:
                room -= 1
                yield aim.enode

    def next_due(self, busy: Container[bytes], room: int) -> float | None:
        """When there is somebody to dial next; None: not before something changes."""
        aims = list(self._static.values())
        aims += (aim for aim in self._found.values() if room > 0 or self._is_member(aim.enode.node_id))
        return min((aim.due for aim in aims if aim.enode.node_id not in busy), default=None)

    def ended(self, node_id: bytes, now: float, outcome: Outcome) -> None:
        """An attempt at this node, or a connection with it that anybody made, is over."""
        for aim in self._static.values():
            if aim.enode.node_id == node_id:
                aim.due = now + self._static_delay(aim, outcome)
        found = self._found.get(node_id)
        if found is None:
            return
        found.failures = found.failures + 1 if outcome is Outcome.FAILED else 0
        if found.failures >= _GIVE_UP_AFTER:
            # discovery will say so if it is ever seen alive again
            del self._found[node_id]
        else:
            pause = min(PAUSE_S * 2 ** max(found.failures - 1, 0), _LONGEST_PAUSE_S)
            found.due = now + self._jittered(pause)

    def _static_delay(self, aim: _Aim, outcome: Outcome) -> float:
        last = len(STATIC_DELAYS) - 1
        if outcome is Outcome.FAILED:
            step = min(aim.failures, last)
            aim.failures += 1
        elif outcome is Outcome.LOST:
            step = aim.failures = 0
        else:
            step = 3 if outcome is Outcome.FULL else 1
        delay = STATIC_DELAYS[step]
        if is_public(aim.enode.ip):
            delay = max(delay, PAUSE_S)
        elif outcome is Outcome.FAILED:
            delay = min(delay, NEAR_DELAY_S)
        return self._jittered(delay)

    def _jittered(self, seconds: float) -> float:
        """Some more or less, so that nodes that lost each other do not dial in step."""
        return seconds * (1 + _JITTER * (2 * self._random.random() - 1))
