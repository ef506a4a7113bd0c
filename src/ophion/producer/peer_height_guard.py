"""`PeerHeightGuard`: keeps a validator from signing below the height of its peers.

A validator with an old or empty database would sign blocks at heights that its network decided long ago. So the
validator signs nothing while its peers report a higher head. This wait ends one timeout after the last received block,
because peers may report false heights.

After the start, the heads of other validators arrive one after another. On a busy machine, a handshake takes longer
than the timeout. So the timeout begins again as long as other validators are connecting, up to `MAX_START_WAIT_S`.
The wait ends early when enough other validators have reported a head and no peer reports a higher one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, TypeAlias

from ophion.consensus.missed_migration import unknown_rules
from ophion.primitives.types import Address

ReportedHeights: TypeAlias = Callable[[], Iterable[tuple[Address, int]]]
"""Returns address and height of every connected peer whose best block is known."""

AnnouncedRules: TypeAlias = Callable[[], Iterable[tuple[Address, int]]]
"""Returns, for each peer that announced rules unknown to this node, its address and the first block of these rules."""

ConnectingNodes: TypeAlias = Callable[[], Iterable[Address]]
"""Returns the addresses of nodes that are being dialled, and of peers that have not reported their best block yet."""

MAX_START_WAIT_S: Final = 30.0
"""Maximum time after the start during which validators that are connecting restart the timeout."""


class PeerHeightGuard:
    """Decides when a validator may sign on a head. A validator without peers may always sign."""

    def __init__(self, me: Address) -> None:
        self._me = me
        self._reported: ReportedHeights | None = None
        self._announced: AnnouncedRules = lambda: ()
        self._connecting: ConnectingNodes = lambda: ()
        self._started_at: float | None = None
        """Time of the first check of peers."""
        self._is_settled = False
        """Whether the check of peers after the start is over."""
        self._head = 0
        self._deadline: float | None = None
        """Time when the wait on this head ends. None if the validator does not wait."""
        self._distrusted: set[Address] = set()
        """Validators that reported a height and sent no block for one timeout. They cannot cause a second wait."""

    def watch(
        self,
        reported: ReportedHeights,
        announced: AnnouncedRules = lambda: (),
        connecting: ConnectingNodes = lambda: (),
    ) -> None:
        """Set the peers whose heights are checked."""
        self._reported = reported
        self._announced = announced
        self._connecting = connecting

    def check_rules(self, head: int, validators: Collection[Address]) -> None:
        """Raise `UnknownRules` if more than f validators announce unknown rules for the block after `head`."""
        error = unknown_rules(self._announced(), validators, head + 1)
        if error is not None:
            raise error

    def begins_at(self, head: int, validators: Collection[Address], needed: int, timeout_s: float, now: float) -> float:
        """Return the wall time before which this validator must not sign on `head`, or 0 if it may sign now.

        After the start, the validator waits until `needed` other validators have reported their heads, and checks the
        heads of all peers. Later it checks validators only: anyone can create node ids, and each new id could delay a
        block.
        """
        if self._reported is None or len(validators) < 2 or self._me not in validators:
            return 0.0
        reported = dict(self._reported())
        known = [address for address in reported if address in validators]
        if self._started_at is None or now < self._started_at:
            self._started_at = now
        if self._deadline is not None:
            # if the clock was set back, wait one timeout at most
            self._deadline = min(self._deadline, now + timeout_s)
        if self._awaits_validators(validators, now - self._started_at):
            # clear the deadline even if it has not passed, so that a new one is set below: the state machine starts to
            # vote at the deadline that it got last
            self._deadline = None
        elif self._deadline is not None and now >= self._deadline:
            # the timeout has passed: ignore the validators that reported a higher head and sent no block meanwhile
            self._is_settled, self._deadline = True, None
            self._distrusted.update(address for address in known if reported[address] > head)
        if self._is_settled:
            is_open = not any(reported[peer] > head for peer in known if peer not in self._distrusted)
        else:
            is_open = len(known) >= needed and all(height <= head for height in reported.values())
        if is_open:
            self._is_settled, self._deadline = True, None
            return 0.0
        if self._deadline is None or self._head != head:
            self._head, self._deadline = head, now + timeout_s
        return self._deadline

    def _awaits_validators(self, validators: Collection[Address], waited_s: float) -> bool:
        """Whether the start is not over, and other validators are connecting, whose heads may still arrive."""
        if self._is_settled or waited_s >= MAX_START_WAIT_S:
            return False
        return any(address in validators and address != self._me for address in self._connecting())
