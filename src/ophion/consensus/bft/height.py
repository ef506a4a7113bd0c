"""One height of one validator: its rounds, timers, votes and the proof carried from round to round.

Safety: if at most f validators misbehave, a height never decides two blocks (consensus.md 2.9, 2.10):

1. In each round, an honest validator votes only for the first justified proposal. `DurableVotes` keeps vote and round
   across a restart. Two quorums share an honest validator, so at most one digest is prepared.
2. An own commit counts only after `prepared` is set and stored. So when Q commits exist, at least Q - f honest
   validators hold the proof of that digest.
3. A later round needs Q round changes. At least one of them comes from a validator of step 2 and carries the proof.
   `ProtocolRules.check_proposal` accepts only the block proved in the latest round. By induction every later proof is
   for the same block.
4. Rounds only go up: after a round change or a vote in round r the validator never votes below r. `current` ensures
   this while the process runs, `DurableVotes.resume_round` after a restart.

Liveness: every height is decided after messages arrive again. Timeouts double until the cap, and validators follow
f + 1 others to a later round. At the cap no validator leaves a round before a quorum has been in it for a whole timeout
(`RoundSynchronisation`). So an honest quorum reaches the same round and stays in it for this time. Of f + 1 such
rounds, at least one has an honest proposer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import (
    BftEffect,
    BuildProposal,
    CheckProposal,
    Head,
    ProposalBuilt,
    ProposalChecked,
    RoundTimer,
    VoteRefused,
    VoteStored,
)
from ophion.consensus.bft.height_timers import HeightTimers
from ophion.consensus.bft.messages import BftMessage, Commit, Prepare, Proposal, RoundChange, Unjustified
from ophion.consensus.bft.missing_proof import MissingProof, proof_of, round_of, unsigned_round_change
from ophion.consensus.bft.own_messages import OwnMessages
from ophion.consensus.bft.pending_proposals import PendingProposal, PendingProposals, ProposalAction
from ophion.consensus.bft.prepare_commit import RoundVoting
from ophion.consensus.bft.proposer_liveness import ProposerLiveness
from ophion.consensus.bft.protocol import MessageFactory, ProtocolRules
from ophion.consensus.bft.round import MAX_ROUND, NOT_STARTED, EarlyVotes, Round
from ophion.consensus.bft.round_change import Certificate, RoundChanges
from ophion.consensus.bft.round_synchronisation import RoundSynchronisation
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Address, Hash32

_NOTES_KEPT: Final = 8

RelayCallback: TypeAlias = Callable[[BftMessage, "Address | None"], None]
"""Relays a message that came from a peer."""


class Height:
    """Runs one height of consensus. `emit` and `relay` receive all resulting effects."""

    def __init__(
        self,
        rules: ProtocolRules,
        factory: MessageFactory,
        validator_set: ValidatorSet,
        head: Head,
        timing: RoundTiming,
        liveness: ProposerLiveness,
        follows_others: bool,
        durable_votes: DurableVotes | None,
        emit: Callable[[BftEffect], None],
        relay: RelayCallback,
        parent_proposed_at: float | None = None,
        defers_votes: bool = False,
    ) -> None:
        """Create a height. `parent_proposed_at` is the time at which this validator received the proposal of the head.

        With `defers_votes`, own messages count only after `VoteStored`, because the driver signs messages or stores
        votes asynchronously.
        """
        self.validator_set = validator_set
        self.head = head
        self.timing = timing
        self.round_changes = RoundChanges()
        self.timers = HeightTimers(validator_set.height, timing, emit)
        self.gathering = RoundSynchronisation(validator_set, timing)
        self.notes: deque[str] = deque(maxlen=_NOTES_KEPT)
        """Recent problems at this height, shown in the consensus status."""
        self._liveness = liveness
        self._rules = rules
        self._factory = factory
        self._me = factory.address
        self._follows_others = follows_others
        self._emit = emit
        self._relay = relay
        self._parent_proposed_at = parent_proposed_at
        self._own = OwnMessages(validator_set, durable_votes, emit, defers_votes)
        self._voting = RoundVoting(rules, factory, validator_set, self._own, NOT_STARTED, emit)
        self._missing_proof = MissingProof()
        self._early = EarlyVotes()
        self._offers = PendingProposals()
        self._certified = 0
        self._building: tuple[int, Certificate | None, float] | None = None
        """Round, certificate and start time of the block that is being built."""
        self._turn_began = 0.0

    @property
    def round(self) -> Round:
        """The current round."""
        return self._voting.round

    @property
    def current(self) -> int:
        """Number of the current round."""
        return self._voting.round.number

    @property
    def proposed_at(self) -> float | None:
        """Wall time at which the accepted proposal arrived, or at which this validator began to build it."""
        return self._voting.proposed_at

    @property
    def durable_votes(self) -> DurableVotes:
        """The votes of this validator at this height, as they are stored on disk."""
        return self._own.durable_votes

    # --- timers and results ---------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Begin the height in its first round, or in the round from `DurableVotes`."""
        if self.durable_votes.resume_round > 0:
            self._change_round(self.durable_votes.resume_round, now)
            return
        due = self.timing.block_due(self.head.timestamp, now, self._parent_proposed_at)
        if not self._rules.starts_on_block_timer:
            self._start_round(0, now)
            # the proposer's turn begins when its block is due: if round 0 ends before, the proposer has not missed its
            # turn
            self._turn_began = max(now, due)
        if self._rules.starts_on_block_timer or self._awaited(0) > 0 or self.validator_set.proposer(0) == self._me:
            self.timers.set_block(due)

    def on_block_timer(self, now: float, is_pool_empty: bool = False) -> None:
        """Begin round 0 when its block is due. The proposer builds a block; the round of an absent proposer is skipped.

        While there are no transactions, every QBFT validator waits like the proposer, so that no round expires.
        """
        self.timers.block_due = None
        if self._rules.starts_on_block_timer:
            if self.current != NOT_STARTED or (is_pool_empty and self._waits_for_transactions(now)):
                return
            self._start_round(0, now)
        if self.current == 0:
            self._pass_over(now)
        if self.current == 0 and self.validator_set.proposer(0) == self._me and self.round.proposal is None:
            self._build(None, self.timing.timestamp(now), now)

    def on_round_timer(self, event: RoundTimer, now: float) -> None:
        """Leave the round after its timeout. If no quorum has reached the round yet, stay and send the round change
        again.
        """
        if event.round != self.current:
            return
        if self.gathering.is_complete:
            self._change_round(self._awaited(self.current + 1), now)
        else:
            self.timers.set_round(self.current, now)
            self._ask_for_round(now)

    def on_disconnected(self, now: float) -> None:
        """Leave the current round if its proposer has disconnected. If round 0 has not begun, skip it when its block is
        due.
        """
        if self.current > 0 or (self.current == 0 and now >= self._turn_began):
            self._pass_over(now)
        elif self.timers.block_due is None and self._awaited(0) > 0:
            self.timers.set_block(self._turn_began)

    def on_connected(self, peer: Address) -> None:
        """Send the messages of this round again to a validator that may have missed them."""
        self._own.repeat(peer)

    def on_built(self, event: ProposalBuilt, now: float) -> None:
        """Propose the new block, if this round still needs a proposal and the block is not delayed as empty."""
        if self._building is None or self._building[0] != event.round or event.round != self.current:
            return
        _, certificate, begun_at = self._building
        self._building = None
        if self.round.proposal is not None:
            return  # another node with the same validator key has already proposed in this round
        if event.is_empty and certificate is None and self._waits_for_transactions(now):
            return
        self._voting.propose(event.block, certificate, begun_at)

    def on_checked(self, event: ProposalChecked, now: float) -> None:
        """Accept a valid proposal. If its round is later than the current round, move to that round.

        After an invalid block, the round accepts no other block, because its proposer has signed this one. If the body
        does not match the header, the next copy of the proposal is checked.
        """
        number = event.round
        offer = self._offers.checked(number, event.digest)
        if offer is None:
            return
        proposal, peer, arrived_at = offer
        if event.is_body_wrong:
            name = "a peer that is no validator" if peer is None else f"0x{peer.hex()}"
            self.notes.append(f"a proposal of round {number} has the body of another block: sent by {name}")
            copy = self._offers.another_copy(number, peer)
            if copy is not None:
                self._emit(CheckProposal(copy))
            return
        self._offers.close(number)
        if event.problem is not None:
            self.notes.append(f"the proposal of round {number} was refused: {event.problem}")
            return
        self._relay(proposal, peer)
        if number > self.current:
            self._start_round(number, now)
        if number == self.current and self.round.proposal is None:
            self._voting.accept(proposal, arrived_at)

    def on_stored(self, event: VoteStored) -> None:
        """Send and count an own message whose votes are stored. If its round has ended, do not send the message."""
        self._own.on_stored(event, self.current)

    def on_refused(self, event: VoteRefused, now: float) -> None:
        """Drop an own message, because another node with the same key has voted differently. Move to the round of that
        vote.

        The other node may have stopped before it sent its round change, so this node repeats the round change.
        """
        stored = event.stored
        self.notes.append(f"a vote was not sent: another node with this key has stored {stored}")
        self._missing_proof.need(stored)
        if event.proof is not None:
            change = unsigned_round_change(event.proof, self.validator_set.height, self._me)
            if self._is_justified(change):
                self._missing_proof.add(event.proof)
        if stored.round > self.current:
            has_proof = round_of(self.durable_votes.prepared) >= stored.prepared_round
            if stored.vote is None and has_proof:
                self._change_round(stored.round, now)
            else:
                self._start_round(stored.round, now)
        self._adopt_proof(now)

    def _adopt_proof(self, now: float) -> None:
        """Adopt the proof that the vote record names, if this node lacks the proof and another validator has sent it.
        Send the proof with a round change for the current round.
        """
        proof = self._missing_proof.found(self.durable_votes.prepared, self.current)
        if proof is not None:
            self._own.note_prepared(proof)
            self._ask_for_round(now)

    def _keep_proof(self, message: RoundChange, now: float) -> None:
        """Keep the proof of a checked round change, because another node with this key may have used the proof in a
        commit.
        """
        if self._own.defers_votes:
            self._missing_proof.add(proof_of(message))
            self._adopt_proof(now)

    # --- messages -------------------------------------------------------------------------------

    def on_message(self, message: BftMessage, peer: Address | None, now: float) -> bool:
        """Handle a message of this height, signed by one of its validators and sent by `peer`.

        Votes are relayed without a check. Proposals and round changes have unsigned parts, so the node checks these
        messages before it relays them. Returns False if the message was dropped because of its sender; a copy from
        another peer then does not count as a duplicate.
        """
        author, round_number = message.author, message.round
        if author != self._me and self.gathering.record_round(author, round_number, self.current):
            self.timers.set_round(self.current, now)
        if type(message) is Prepare or type(message) is Commit:
            self._relay(message, peer)
        if round_number < self.current:
            if type(message) is RoundChange and self._own.defers_votes and self._is_justified(message):
                self._keep_proof(message, now)
            return True
        if type(message) is Prepare:
            if author != self.validator_set.proposer(round_number) or self._rules.proposer_prepares:
                if round_number > self.current:
                    self._early.add(message)
                elif self.round.add_prepare(message):
                    self._voting.progress()
        elif type(message) is Commit:
            if round_number > self.current:
                self._early.add(message)
            elif self.round.add_commit(message):
                self._voting.progress()
        elif type(message) is RoundChange:
            if self._take_round_change(message, now):
                self._relay(message, peer)
        elif type(message) is Proposal:
            return self._take_proposal(message, peer, now)
        return True

    def _take_proposal(self, proposal: Proposal, peer: Address | None, now: float) -> bool:
        """Check the first justified proposal of a round. Returns False if the proposal was dropped because of the peer
        that sent it, so that a copy from another peer is accepted.
        """
        number = proposal.round
        if number == self.current and self.round.proposal is not None:
            return True
        sender = peer if peer in self.validator_set.members else None
        state = self._offers.state(proposal, sender)
        if state is not ProposalAction.WANTED:
            return state is ProposalAction.KNOWN
        try:
            self._rules.check_proposal(proposal, self.validator_set, self._factory)
        except Unjustified as refusal:
            self.notes.append(f"a proposal of round {number} was dropped: {refusal}")
            return True
        if self._offers.add(PendingProposal(proposal, sender, now)):
            self._emit(CheckProposal(proposal))
        return True

    def _take_round_change(self, message: RoundChange, now: float) -> bool:
        """Handle a round change for a later round: enter the round if enough validators request it, and propose if this
        validator is the proposer. Returns whether the round change was valid and new.
        """
        target = message.round
        if target > MAX_ROUND:
            return False
        if not self._is_justified(message) or not self.round_changes.add(message):
            return False
        self._keep_proof(message, now)
        if target > self._certified and len(self.round_changes.authors(target)) >= self.validator_set.quorum:
            self._certified = target
            certificate = self.round_changes.certificate(target)
            if target > self.current:
                self._start_round(target, now)
            if self.validator_set.proposer(target) == self._me and self.round.proposal is None:
                self._propose_again(certificate, now)
        elif self._follows_others:
            ahead = self.round_changes.reached_by(self.validator_set.faults + 1, self.current)
            if ahead is not None:
                self._change_round(ahead, now)
        return True

    def _is_justified(self, message: RoundChange) -> bool:
        """Whether a round change proves what it claims. Notes the reason if it does not."""
        try:
            self._rules.check_round_change(message, self.validator_set)
        except Unjustified as refusal:
            self.notes.append(f"a round change to {message.round} was dropped: {refusal}")
            return False
        return True

    # --- rounds ---------------------------------------------------------------------------------

    def _start_round(self, number: int, now: float) -> None:
        had_turn = self.current >= 0 and now >= self._turn_began
        if had_turn and self.round.proposal is None and not self._offers.is_pinned(self.current):
            self._liveness.missed_turn(self.validator_set.proposer(self.current), self._turn_began)
        self._turn_began = now
        self._own.start_round()
        self._voting.start(number)
        self._building = None
        self.gathering.start(number)
        self.timers.set_round(self.current, now)
        self.round_changes.forget_below(number)
        self._offers.forget_below(number)
        for vote in self._early.start(number):
            if type(vote) is Prepare:
                self.round.add_prepare(vote)
            elif type(vote) is Commit:
                self.round.add_commit(vote)

    def _change_round(self, target: int, now: float) -> None:
        """Enter a later round and send a round change."""
        self._start_round(target, now)
        self._ask_for_round(now)

    def _ask_for_round(self, now: float) -> None:
        """Send a round change for the current round, with the prepared certificate of an earlier round, if any."""
        height, number, durable_votes = self.validator_set.height, self.current, self.durable_votes
        votes = (
            durable_votes
            if durable_votes.round == number
            else DurableVotes(height, number, None, durable_votes.prepared)
        )
        self._own.cast(
            number,
            lambda: self._factory.round_change(height, number, durable_votes.prepared),
            lambda message: votes,
            lambda message: self._count_round_change(message, now),
        )

    def _count_round_change(self, message: RoundChange, now: float) -> None:
        self._take_round_change(message, now)

    def _awaited(self, number: int) -> int:
        return self._liveness.awaited_round(number, self.validator_set, self._me)

    def _pass_over(self, now: float) -> None:
        """Leave the current round before its timeout if its proposer is absent and has not proposed."""
        if self.round.proposal is None and not self._offers.is_pinned(self.current):
            target = self._awaited(self.current)
            if target > self.current:
                self._change_round(target, now)

    def _waits_for_transactions(self, now: float) -> bool:
        """Delay an empty block if the rules of QBFT allow this: round 0 starts again after the delay (consensus.md
        3.5). Returns whether the block is delayed.
        """
        limit = self.head.timestamp + self.timing.empty_period_s
        if not self._rules.starts_on_block_timer or not self.timing.empty_period_s or now >= limit:
            return False
        self._voting.start(NOT_STARTED)
        self.timers.cancel_round()
        self.timers.set_block(min(limit, now + self.timing.period_s))
        return True

    # --- proposing ------------------------------------------------------------------------------

    def _build(self, certificate: Certificate | None, timestamp: int, now: float) -> None:
        self._building = (self.current, certificate, now)
        timestamp = max(self.head.timestamp + int(self.timing.period_s), timestamp)
        self._emit(BuildProposal(self.head.hash, self.validator_set.height, self.current, timestamp))

    def _propose_again(self, certificate: Certificate, now: float) -> None:
        """Propose a block at the start of a later round: the prepared block of the certificate, or else a new block."""
        if certificate.block is None:
            self._build(certificate, int(now), now)
        else:
            self._voting.propose(self._factory.with_round(certificate.block, self.current), certificate, now)

    def has_voted_for(self, block_hash: Hash32) -> bool:
        """Whether this validator has voted for a block."""
        return self._voting.has_voted_for(block_hash)

    def footprint(self) -> int:
        """Number of stored messages of other validators. The number grows at most in proportion to the number of
        validators.
        """
        stored = len(self._early) + len(self.round_changes) + len(self._offers) + len(self._missing_proof)
        return stored + len(self.round.prepares) + len(self.round.commits)
