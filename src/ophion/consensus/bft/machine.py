"""The BFT state machine: events in, effects out, nothing else.

It never waits, reads no clock and does no I/O: `now` comes with each event. One driver per node feeds it, in one
thread, and runs the effects; a simulator can do the same with thousands of machines and a clock of its own.

    driver ── NewHead, Received, timers, ProposalBuilt, ProposalChecked ──▶ BftMachine.handle
           ◀── SetTimer, Remember, Multicast, Relay, BuildProposal, CheckProposal, ImportBlock, CatchUp ──

This file holds what outlives a height (head, filters, messages of later heights); `Height` holds the rest.
"""

from __future__ import annotations

from ophion.consensus.bft.committee import Committee
from ophion.consensus.bft.dialect import Rules, Scribe
from ophion.consensus.bft.events import (
    BftEffect,
    BftEvent,
    BlockTimer,
    CancelTimer,
    CatchUp,
    Head,
    NewHead,
    ProposalBuilt,
    ProposalChecked,
    Received,
    Relay,
    RoundTimer,
    Suspended,
    TaskFailed,
    TimerKind,
)
from ophion.consensus.bft.height import Height
from ophion.consensus.bft.inbox import FutureMessages, InboxLimits, RecentlySeen
from ophion.consensus.bft.memory import Memory

DEFAULT_LIMITS = InboxLimits()


class BftMachine:
    """One validator (or a node that may become one)."""

    def __init__(
        self,
        rules: Rules,
        scribe: Scribe,
        limits: InboxLimits = DEFAULT_LIMITS,
        follows_others: bool = True,
        memory: Memory | None = None,
    ) -> None:
        """`memory` is what the last `Remember` of an earlier run stored.

        `follows_others`: move to a later round as soon as f + 1 validators have asked for it, instead of waiting for
        the own time-out (consensus.md 3.5, early round change).
        """
        self.rules = rules
        self.limits = limits
        self.address = scribe.address
        self.head: Head | None = None
        self.committee: Committee | None = None
        """Who decides the current height; known also where this node is not among them."""
        self.height: Height | None = None
        """The running height; None while suspended or not a validator."""
        self.fork_note: str | None = None
        """Set when a second block appeared at the height of the head, which honest quorums cannot produce."""
        self.has_twin = False
        """Whether a peer has sent messages signed with the key of this node, which do not come back by themselves."""
        self._scribe = scribe
        self._follows_others = follows_others
        self._memory = memory
        self._is_running = False
        self._seen = RecentlySeen(limits.duplicates)
        self._relayed = RecentlySeen(limits.gossiped_history)
        self._future = FutureMessages(limits.future_messages, limits.future_distance)
        self._effects: list[BftEffect] = []

    def handle(self, event: BftEvent, now: float) -> list[BftEffect]:
        """Take one event; the effects are to be run in their order. `now` is wall time in seconds."""
        if isinstance(event, Received):
            self._on_received(event, now)
        elif isinstance(event, NewHead):
            self._on_new_head(event, now)
        elif isinstance(event, Suspended):
            self._stop()
            self._is_running = False
        else:
            self._on_height_event(event, now)
        effects = self._effects
        if effects:
            effects = effects.copy()
            self._effects.clear()
            return effects
        return []

    def is_duplicate(self, fingerprint: bytes) -> bool:
        """Whether a message with this H(message data) would be dropped: worth asking before decoding it."""
        return fingerprint in self._seen

    @property
    def is_running(self) -> bool:
        """Whether consensus takes part in events; false before the first head and while suspended."""
        return self._is_running

    def footprint(self) -> int:
        """How many messages and fingerprints are held, for the bound that the simulator checks."""
        held = len(self._seen) + len(self._relayed) + len(self._future)
        return held + (self.height.footprint() if self.height is not None else 0)

    # --- events ---------------------------------------------------------------------------------

    def _on_new_head(self, event: NewHead, now: float) -> None:
        known = self.head
        if self._is_running and known is not None and event.head.number <= known.number:
            if event.head.number == known.number and event.head.hash != known.hash:
                # finality is immediate: this takes 2Q - n misbehaving or forgetful validators (consensus.md 2.10)
                self.fork_note = (
                    f"two blocks at height {known.number}: 0x{known.hash.hex()} and 0x{event.head.hash.hex()}"
                )
            return
        self.head = event.head
        self.has_twin = False
        self._is_running = True
        number = event.head.number + 1
        self.committee = Committee.of(number, event.validators, event.head.builder)
        self._stop()
        if self.address in self.committee.members:
            self.height = Height(
                self.rules,
                self._scribe,
                self.committee,
                event.head,
                event.timing,
                self._follows_others,
                self._memory if self._memory is not None and self._memory.height == number else None,
                self._effects.append,
            )
            self.height.start(now)
        for received in self._future.take(number):
            self._deliver(received, now)

    def _stop(self) -> None:
        """Leave the height, keeping its promises: the same height may be entered again."""
        if self.height is not None:
            self._memory = self.height.memory
            self.height = None
            self._effects += (CancelTimer(TimerKind.BLOCK), CancelTimer(TimerKind.ROUND))

    def _on_received(self, event: Received, now: float) -> None:
        """The filters of consensus.md 2.8, in their order."""
        if not self._is_running or self.head is None:
            return
        message = event.message
        if not self._seen.add(message.fingerprint):
            return
        current = self.head.number + 1
        if message.height < current:
            return
        if message.height > current:
            self._future.add(event, current)
            self._effects.append(CatchUp(event.peer, message.height - 1))
            return
        self._deliver(event, now)

    def _deliver(self, event: Received, now: float) -> None:
        height = self.height
        message = event.message
        author = message.author
        if author == self.address:
            self.has_twin = True
            return
        if height is None or author not in height.committee.members:
            return
        if self._relayed.add(message.fingerprint):
            self._effects.append(Relay(message, (event.peer, author)))
        height.on_message(message, now)

    def _on_height_event(
        self, event: BlockTimer | RoundTimer | ProposalBuilt | ProposalChecked | TaskFailed, now: float
    ) -> None:
        height = self.height
        if height is None or event.height != height.committee.height:
            return
        if isinstance(event, RoundTimer):
            height.on_round_timer(event, now)
        elif isinstance(event, BlockTimer):
            height.on_block_timer(now)
        elif isinstance(event, ProposalChecked):
            height.on_checked(event, now)
        elif isinstance(event, ProposalBuilt):
            height.on_built(event, now)
        else:
            height.notes.append(event.problem)
