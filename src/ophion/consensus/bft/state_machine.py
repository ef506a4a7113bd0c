"""The BFT state machine: it consumes events and returns effects.

The state machine never waits, reads no clock and does no I/O: `now` comes with each event. One driver per node calls it
from one thread and runs the effects. The simulator does the same with thousands of machines and a virtual clock.

    driver ── NewHead, MessageReceived, timers, ProposalBuilt, ProposalChecked, Connected ──▶ BftStateMachine.handle
           ◀── SetTimer, StoreVotes, Multicast, RelayMessage, BuildProposal, CheckProposal, ImportBlock, CatchUp ──

This file holds the state that outlives a height: head, filters, messages of later heights, liveness. `Height` holds the
state of one height.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import (
    BftEffect,
    BftEvent,
    BlockTimer,
    CancelTimer,
    CatchUp,
    Connected,
    Disconnected,
    Head,
    MessageReceived,
    Multicast,
    NewHead,
    ProposalBuilt,
    ProposalChecked,
    RelayMessage,
    RoundTimer,
    SetTimer,
    StoreVotes,
    Suspended,
    TaskFailed,
    TimerKind,
    VoteRefused,
    VoteStored,
)
from ophion.consensus.bft.height import Height
from ophion.consensus.bft.lost_state_recovery import LostStateRecovery
from ophion.consensus.bft.message_buffer import FutureMessages, MessageCounts, MessageLimits, RecentlySeen
from ophion.consensus.bft.messages import BftMessage
from ophion.consensus.bft.proposer_liveness import ProposerLiveness
from ophion.consensus.bft.protocol import MessageFactory, ProtocolRules
from ophion.consensus.bft.round import NOT_STARTED
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.sent_messages import SentMessages
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Address

DEFAULT_LIMITS = MessageLimits()
_MAX_RELAYS: Final = 64
"""Maximum number of messages relayed per validator and height. Twenty rounds produce fewer."""


_SEEN_PER_VALIDATOR: Final = 4
"""Minimum number of fingerprints per validator to detect duplicates, even if the genesis file sets a lower limit."""


class BftStateMachine:
    """One validator, or a node that may become a validator."""

    def __init__(
        self,
        rules: ProtocolRules,
        factory: MessageFactory,
        limits: MessageLimits = DEFAULT_LIMITS,
        follows_others: bool = True,
        durable_votes: DurableVotes | None = None,
        passes_over: bool = True,
        is_blank: bool = False,
        running_since: float | None = None,
        *,
        defers_votes: bool = False,
        shares_key: bool = False,
    ) -> None:
        """Create a state machine. `durable_votes` holds the votes that an earlier run stored. `is_blank` means that
        there are no stored votes.

        `running_since` is the wall time at which the node began to follow the chain; if None, the time of its first
        height counts.

        With `follows_others`, the validator moves to a later round as soon as f + 1 validators request that round,
        before its own timeout (consensus.md 3.5, early round change). With `passes_over`, the validator does not wait
        for absent proposers (`ProposerLiveness`). With `defers_votes`, own messages leave as `CastVote`. With
        `shares_key`, other nodes have the same key, and their messages count as messages of this validator.
        """
        self.rules = rules
        self.limits = limits
        self.address = factory.address
        self.head: Head | None = None
        self.validator_set: ValidatorSet | None = None
        """Validators of the current height, even if this node is not a validator."""
        self.height: Height | None = None
        """The running height; None while consensus is suspended or this node is not a validator."""
        self.fork_note: str | None = None
        """Note about a second block at the height of the head, which an honest quorum cannot produce. None if there is
        no such block.
        """
        self.has_foreign_signature = False
        """Whether a peer sent a message that is signed with this node's key, but that this node did not send."""
        self.is_held = False
        """Whether this validator waits before it signs, because peers report a higher head (`NewHead.begins_at`)."""
        self.counts = MessageCounts()
        self.liveness = ProposerLiveness(passes_over)
        self._factory = factory
        self._follows_others = follows_others
        self._defers_votes = defers_votes
        self._shares_key = shares_key
        self._durable_votes = durable_votes
        self._sent = SentMessages(durable_votes)
        self._recovery = LostStateRecovery(running_since) if is_blank else None
        self._new_head: NewHead | None = None
        self._proposed_at: float | None = None
        """Time at which the proposal of the head arrived, if this validator voted for the head."""
        self._is_running = False
        self._seen = RecentlySeen(limits.duplicates)
        self._relayed = RecentlySeen(limits.gossiped_history)
        self._relays: Counter[Address] = Counter()
        """Number of relayed messages per author at this height."""
        self._future = FutureMessages(limits.future_messages, limits.future_distance)
        self._effects: list[BftEffect] = []

    def handle(self, event: BftEvent, now: float) -> list[BftEffect]:
        """Handle one event. Returns the effects in the order in which the driver runs them. `now` is wall time in
        seconds.
        """
        if isinstance(event, MessageReceived):
            self._on_received(event, now)
        elif isinstance(event, NewHead):
            self._on_new_head(event, now)
        elif isinstance(event, Suspended):
            self._stop()
            self.is_held = False
            self._is_running = False
        elif isinstance(event, VoteStored | VoteRefused):
            self._on_cast(event, now)
        elif isinstance(event, Connected):
            self._on_connected(event.peer)
        elif isinstance(event, Disconnected):
            self._on_disconnected(event.peer, now)
        else:
            self._on_height_event(event, now)
        effects = self._effects
        if effects:
            effects = effects.copy()
            self._effects.clear()
            return effects
        return []

    def is_duplicate(self, fingerprint: bytes) -> bool:
        """Whether a message with this hash would be dropped as a duplicate. Callers check the hash before they
        decode.
        """
        return fingerprint in self._seen

    @property
    def skips_height(self) -> bool:
        """Whether this validator skips a height because it has lost its votes (`LostStateRecovery`)."""
        is_member = self.validator_set is not None and self.address in self.validator_set.members
        return self._recovery is not None and self.height is None and is_member

    @property
    def is_running(self) -> bool:
        """Whether consensus is running. Consensus does not run before the first head, or while it is suspended."""
        return self._is_running

    def block_due(self, parent: int, parent_timestamp: int, timing: RoundTiming, now: float) -> float:
        """Return the time at which the block after `parent` is due. The parent itself may be undecided."""
        height = self.height
        is_undecided = height is not None and height.validator_set.height == parent
        proposed_at = height.proposed_at if is_undecided and height is not None else self._proposed_at
        return timing.block_due(parent_timestamp, now, proposed_at)

    def footprint(self) -> int:
        """Number of stored messages and fingerprints. The simulator checks that this number is bounded."""
        held = len(self._seen) + len(self._relayed) + len(self._future) + len(self.liveness)
        return held + (self.height.footprint() if self.height is not None else 0)

    # --- events ---------------------------------------------------------------------------------

    def _on_new_head(self, event: NewHead, now: float) -> None:
        known = self.head
        if self.is_held and known is not None and event.head.hash == known.hash:
            self._hold_or_enter(event, False, now)
            return
        if self._is_running and known is not None and event.head.number <= known.number:
            is_other = event.head.number == known.number and event.head.hash != known.hash
            if is_other and event.is_provisional:
                self._change_head(event, now)
            elif is_other:
                # blocks are final, so a fork needs 2Q - n validators that misbehave or lost their votes (consensus.md
                # 2.10)
                self.fork_note = (
                    f"two blocks at height {known.number}: 0x{known.hash.hex()} and 0x{event.head.hash.hex()}"
                )
            return
        if known is None or known.number != event.head.number:
            self._sent.clear()
        self._change_head(event, now)

    def _change_head(self, event: NewHead, now: float) -> None:
        """Leave the running height and enter the height after this head. If the height stays the same (another block at
        the head's number), the votes of the height stay in force.
        """
        self.head = event.head
        self.has_foreign_signature = False
        self._is_running = True
        self.validator_set = ValidatorSet.of(event.head.number + 1, event.validators, event.head.builder)
        self.liveness.keep(self.validator_set.members)
        # remember several message fingerprints per validator, because peers that run another client relay both the
        # prepare and the commit of every validator
        self._seen.resize(max(self.limits.duplicates, _SEEN_PER_VALIDATOR * len(self.validator_set)))
        has_voted = self.height is not None and self.height.has_voted_for(event.head.hash)
        self._proposed_at = self.height.proposed_at if has_voted and self.height is not None else None
        self._stop()
        self._hold_or_enter(event, has_voted, now)

    def _hold_or_enter(self, event: NewHead, has_voted: bool, now: float) -> None:
        """Enter the next height. If peers report a higher head, first wait for the missing blocks."""
        self._new_head = event
        number = event.head.number + 1
        self.is_held = (
            event.begins_at > now and self.validator_set is not None and self.address in self.validator_set.members
        )
        if self.is_held:
            self._effects.append(SetTimer(TimerKind.ROUND, event.begins_at, RoundTimer(number, NOT_STARTED)))
        else:
            self._enter(event, has_voted, now)

    def _enter(self, event: NewHead, has_voted: bool, now: float) -> None:
        """Enter the height after a head as a validator, a recovering validator or a follower."""
        assert self.validator_set is not None, "the validators are known with the head"
        number = self.validator_set.height
        if self._must_skip(self.validator_set, event, has_voted, now):
            self._look_again(now)
        elif self.address in self.validator_set.members:
            durable_votes = self._durable_votes
            self._begin(
                self.validator_set,
                event,
                durable_votes if durable_votes is not None and durable_votes.height == number else None,
                now,
            )
        for received in self._future.take(number):
            self._deliver(received, now)

    def _begin(
        self, validator_set: ValidatorSet, event: NewHead, durable_votes: DurableVotes | None, now: float
    ) -> None:
        """Take part in consensus at the height of the validator set."""
        self._relays.clear()
        self.height = Height(
            self.rules,
            self._factory,
            validator_set,
            event.head,
            event.timing,
            self.liveness,
            self._follows_others,
            durable_votes,
            self._emit,
            self._relay,
            self._proposed_at,
            self._defers_votes,
        )
        self.height.start(now)

    def _must_skip(self, validator_set: ValidatorSet, event: NewHead, has_voted: bool, now: float) -> bool:
        """Whether to skip this height, because this validator may have voted at this height and has lost the record of
        its vote. Ends the recovery at the first height at which it cannot have voted.
        """
        waiting = self._recovery
        if waiting is None:
            return False
        if has_voted or waiting.enter(validator_set, event.head, now):
            self._recovery = None
            if not has_voted:
                self._effects.append(StoreVotes(DurableVotes(event.head.number)))
            return False
        return self.address in validator_set.members and waiting.holds(validator_set, event.head)

    def _look_again(self, now: float) -> None:
        """In a validator that lost its votes: check whether the other validators make progress. If not, begin to vote
        in a later round.
        """
        event, validator_set, waiting = self._new_head, self.validator_set, self._recovery
        if event is None or validator_set is None or waiting is None:
            return
        durable_votes = waiting.joins(validator_set, event.timing, now)
        if durable_votes is None:
            timer = RoundTimer(validator_set.height, NOT_STARTED)
            self._effects.append(SetTimer(TimerKind.ROUND, waiting.next_look(event.timing, now), timer))
        else:
            self._recovery = None
            self._begin(validator_set, event, durable_votes, now)

    def _on_cast(self, event: VoteStored | VoteRefused, now: float) -> None:
        """Handle the result of a `CastVote` of this height."""
        height = self.height
        if height is None or event.order.height != height.validator_set.height:
            return
        if isinstance(event, VoteStored):
            height.on_stored(event)
        elif event.stored.height > event.order.height:
            # another node with the same validator key has a later chain head: send no messages until its blocks arrive
            self._stop()
        else:
            height.on_refused(event, now)

    def _on_connected(self, peer: Address) -> None:
        self.liveness.connected(peer)
        if self.height is not None and peer in self.height.validator_set.members:
            self.height.on_connected(peer)

    def _on_disconnected(self, peer: Address, now: float) -> None:
        self.liveness.disconnected(peer)
        if self.height is not None and peer in self.height.validator_set.members:
            self.height.on_disconnected(now)

    def _emit(self, effect: BftEffect) -> None:
        if isinstance(effect, Multicast):
            self._sent.add(effect.message)
        self._effects.append(effect)

    def _relay(self, message: BftMessage, peer: Address | None) -> None:
        """Relay a message once, unless its author has reached the relay limit."""
        author = message.author
        if self._relays[author] < _MAX_RELAYS and self._relayed.add(message.fingerprint):
            self._relays[author] += 1
            self._effects.append(RelayMessage(message, (peer, author)))

    def _stop(self) -> None:
        """Leave the height but keep its votes, because the validator may enter the same height again."""
        if self.height is not None:
            self._durable_votes = self.height.durable_votes
            self.height = None
            self._effects += (CancelTimer(TimerKind.BLOCK), CancelTimer(TimerKind.ROUND))

    def _on_received(self, event: MessageReceived, now: float) -> None:
        """Filter a received message by the rules of consensus.md 2.8, in order."""
        if not self._is_running or self.head is None:
            return
        message, counts = event.message, self.counts
        counts.received += 1
        if not self._seen.add(message.fingerprint):
            counts.duplicate += 1
            return
        current = self.head.number + 1
        if message.height >= self.head.number and self.validator_set is not None:
            self._note_presence(message, self.validator_set, now)
        if message.height < current:
            counts.stale += 1
        elif message.height == current and not self.is_held:
            self._deliver(event, now)
        else:
            counts.early += 1
            is_validator = self.validator_set is not None and message.author in self.validator_set.members
            author = message.author if is_validator else None
            if not self._future.add(event, current - 1 if self.is_held else current, author):
                counts.too_early += 1
            if message.height > current:
                self._effects.append(CatchUp(event.peer, message.height - 1))

    def _note_presence(self, message: BftMessage, validator_set: ValidatorSet, now: float) -> None:
        if message.author in validator_set.members and message.author != self.address:
            self.liveness.message_received(message.author, now)
            if self._recovery is not None:
                self._recovery.message_received(message.author, message.height, message.round)

    def _deliver(self, event: MessageReceived, now: float) -> None:
        height = self.height
        message = event.message
        author = message.author
        if author == self.address and not self._shares_key:
            self.counts.own += 1
            self.has_foreign_signature = self.has_foreign_signature or not self._sent.may_include(
                message, self._recovery is not None
            )
            return
        if height is None:
            return
        if author not in height.validator_set.members:
            self.counts.foreign += 1
            return
        if not height.on_message(message, event.peer, now):
            self._seen.discard(message.fingerprint)

    def _on_height_event(
        self, event: BlockTimer | RoundTimer | ProposalBuilt | ProposalChecked | TaskFailed, now: float
    ) -> None:
        height = self.height
        if height is None:
            is_look = isinstance(event, RoundTimer) and event.round == NOT_STARTED
            if is_look and self.validator_set is not None and event.height == self.validator_set.height:
                if self.is_held and self._new_head is not None:
                    self.is_held = False
                    self._enter(self._new_head, False, now)
                else:
                    self._look_again(now)
            return
        if event.height != height.validator_set.height:
            return
        if isinstance(event, RoundTimer):
            height.on_round_timer(event, now)
        elif isinstance(event, BlockTimer):
            height.on_block_timer(now, event.is_pool_empty)
        elif isinstance(event, ProposalChecked):
            height.on_checked(event, now)
        elif isinstance(event, ProposalBuilt):
            height.on_built(event, now)
        else:
            height.notes.append(event.problem)
