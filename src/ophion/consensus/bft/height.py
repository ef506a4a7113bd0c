"""One height of one validator: its rounds, timers, votes and the proof carried from round to round.

Why no two blocks are decided at a height, given at most f misbehaving validators (consensus.md 2.9, 2.10):

1. Within a round an honest validator votes for one digest: the first justified proposal pins the round. `DurableVotes`
   keeps vote and round across a restart. Two quorums share an honest validator, so at most one digest is prepared.
2. An own commit counts only after `prepared` is set and stored. So when Q commits exist, at least Q - f honest
   validators hold the proof of that digest.
3. A later round needs Q round changes. At least one of them comes from a validator of step 2 and carries the proof.
   `Rules.check_proposal` accepts only the block proved in the latest round. By induction every later proof is for the
   same block.
4. Rounds only go up: after a round change or a vote in round r the validator never votes below r. `current` ensures
   this while the process runs, `DurableVotes.resume_round` after a restart.

Why a height is decided once messages arrive again: timeouts double until the cap, and validators follow f + 1 others to
a later round. At the cap no validator leaves a round before a quorum has been in that round for a whole timeout
(`_needs_gathering`). So an honest quorum meets in one round and stays. Of f + 1 such rounds, at least one has an honest
proposer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias, TypeVar, cast

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import (
    BftEffect,
    BlockTimer,
    BuildProposal,
    CancelTimer,
    CastVote,
    CheckProposal,
    Head,
    ImportBlock,
    Multicast,
    ProposalBuilt,
    ProposalChecked,
    Remember,
    Repeat,
    RoundTimer,
    SetTimer,
    TimerKind,
    VoteStored,
)
from ophion.consensus.bft.messages import (
    BftMessage,
    Candidate,
    Commit,
    Prepare,
    PreparedRound,
    Proposal,
    RoundChange,
    Unjustified,
)
from ophion.consensus.bft.proposer_liveness import ProposerLiveness
from ophion.consensus.bft.protocol import MessageFactory, Rules
from ophion.consensus.bft.round import EarlyVotes, Round
from ophion.consensus.bft.round_change import Certificate, RoundChanges
from ophion.consensus.bft.timeouts import RoundTiming
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.consensus.bft.vote_record import NOT_PREPARED, VoteRecord
from ophion.primitives.types import Address, Hash32

NOT_STARTED: Final = -1
"""Value of the round number at a QBFT height before its block is due. Until then, votes of round 0 are early
(consensus.md 3.5).
"""

_MAX_CHECKED_ROUNDS: Final = 8
"""Maximum number of rounds whose proposals are being checked. Honest networks check one round at a time."""

_NOTES_KEPT: Final = 8

MAX_ROUND: Final = 2**31 - 1
"""Maximum round number, because other clients use signed 32-bit numbers."""


_Message = TypeVar("_Message", bound=BftMessage)

RelayCallback: TypeAlias = Callable[[BftMessage, "Address | None"], None]
"""Relays a message that came from a peer."""


class _Offer(NamedTuple):
    """A justified proposal and the peer that sent it."""

    proposal: Proposal
    peer: Address | None
    at: float
    """Time of day at which the proposal arrived, in seconds."""


class Height:
    """Runs one height of consensus. `emit` and `relay` receive all resulting effects."""

    def __init__(
        self,
        rules: Rules,
        factory: MessageFactory,
        validator_set: ValidatorSet,
        head: Head,
        timing: RoundTiming,
        liveness: ProposerLiveness,
        follows_others: bool,
        memory: DurableVotes | None,
        emit: Callable[[BftEffect], None],
        relay: RelayCallback,
        parent_proposed_at: float | None = None,
        defers_votes: bool = False,
    ) -> None:
        """Create a height. `parent_proposed_at` is the time at which this validator received the proposal of the head.

        With `defers_votes`, own messages count only after `VoteStored`, because the driver signs or stores them
        elsewhere.
        """
        self.validator_set = validator_set
        self.head = head
        self.timing = timing
        self.current = NOT_STARTED
        """Number of the current round."""
        self.round = Round(NOT_STARTED, factory.seal_author)
        self.round_changes = RoundChanges()
        self.reached: dict[Address, int] = {}
        """Highest round in which each validator has sent a message at this height."""
        self.expires_at: float | None = None
        """Wall time at which the current round ends."""
        self.block_due: float | None = None
        """Wall time at which the block timer fires, if it runs."""
        self.proposed_at: float | None = None
        """Wall time at which the accepted proposal arrived, or at which this validator began to build it."""
        self.notes: deque[str] = deque(maxlen=_NOTES_KEPT)
        """Recent problems, shown in the consensus status."""
        self.memory = memory or DurableVotes(validator_set.height)
        self._liveness = liveness
        self._rules = rules
        self._factory = factory
        self._me = factory.address
        self._follows_others = follows_others
        self._emit = emit
        self._relay = relay
        self._parent_proposed_at = parent_proposed_at
        self._defers_votes = defers_votes
        self._is_alone = len(validator_set) == 1
        self._prepares_needed = rules.prepares_needed(validator_set)
        self._early = EarlyVotes()
        self._offers: dict[int, list[_Offer]] = {}
        """Proposals by round: first the proposal being checked, then the copies to check if its body is wrong."""
        self._pinned: dict[int, Hash32] = {}
        """The digest that the proposer of each round signed, by round. Proposals with other digests are ignored."""
        self._wrong_body_peers: set[Address | None] = set()
        """Peers that sent a proposal with a wrong body."""
        self._certified = 0
        self._has_gathered = True
        self._building: tuple[int, Certificate | None, float] | None = None
        """Round, certificate and start time of the block that is being built."""
        self._turn_began = 0.0
        self._said: dict[type[BftMessage], BftMessage] = {}
        # start without a stored vote even if `memory` comes from disk, so that the node always writes its first vote
        self._remembered: DurableVotes | None = None

    # --- timers and results ---------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Begin the height in its first round, or in the round from `DurableVotes`."""
        if self.memory.resume_round > 0:
            self._change_round(self.memory.resume_round, now)
            return
        due = self.timing.block_due(self.head.timestamp, now, self._parent_proposed_at)
        if not self._rules.starts_on_block_timer:
            self._start_round(0, now)
            # the turn of the proposer begins when its block is due, so an earlier wait does not count as a missed round
            self._turn_began = max(now, due)
        if self._rules.starts_on_block_timer or self._awaited(0) > 0 or self.validator_set.proposer(0) == self._me:
            self._set_block_timer(due)

    def on_block_timer(self, now: float, is_pool_empty: bool = False) -> None:
        """Begin round 0 when its block is due. The proposer builds a block; the round of an absent proposer is skipped.

        While there are no transactions, every QBFT validator waits like the proposer, so that no round expires.
        """
        self.block_due = None
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
        if self._has_gathered:
            self._change_round(self._awaited(self.current + 1), now)
        else:
            self._set_round_timer(now)
            self._ask_for_round(now)

    def on_disconnected(self, now: float) -> None:
        """Leave the current round if its proposer has disconnected. If round 0 has not begun, skip it when its block is
        due.
        """
        if self.current > 0 or (self.current == 0 and now >= self._turn_began):
            self._pass_over(now)
        elif self.block_due is None and self._awaited(0) > 0:
            self._set_block_timer(self._turn_began)

    def on_connected(self, peer: Address) -> None:
        """Send the messages of this round again to a validator that may have missed them."""
        for message in self._said.values():
            self._emit(Repeat(message, peer))

    def on_built(self, event: ProposalBuilt, now: float) -> None:
        """Propose the new block, if this round still needs a proposal."""
        if self._building is None or self._building[0] != event.round or event.round != self.current:
            return
        _, certificate, begun_at = self._building
        self._building = None
        if self.round.proposal is not None:
            return  # another node with the same validator key has already proposed in this round
        if event.is_empty and certificate is None and self._waits_for_transactions(now):
            return
        self._propose(event.block, certificate, begun_at)

    def on_checked(self, event: ProposalChecked, now: float) -> None:
        """Accept a valid proposal. If its round is later than the current round, move to that round.

        An invalid block stays pinned to its round, because the proposer has signed it. A block whose body does not
        match its header is unpinned.
        """
        number = event.round
        offers = self._offers.get(number)
        if not offers or offers[0].proposal.block.digest != event.digest:
            return
        proposal, peer, arrived_at = offers.pop(0)
        if event.is_body_wrong:
            self._on_wrong_body(number, peer)
            return
        del self._offers[number]
        if event.problem is not None:
            self.notes.append(f"the proposal of round {number} was refused: {event.problem}")
            return
        self._relay(proposal, peer)
        if number > self.current:
            self._start_round(number, now)
        if number == self.current and self.round.proposal is None:
            self._accept(proposal, arrived_at)

    def _on_wrong_body(self, number: int, peer: Address | None) -> None:
        """Note the sender of a wrong body and check the next copy of the proposal. If there is no copy, unpin the
        round.
        """
        self.notes.append(f"a proposal of round {number} has the body of another block: sent by {_name(peer)}")
        self._wrong_body_peers.add(peer)
        offers = self._offers[number]
        if offers:
            self._emit(CheckProposal(offers[0].proposal))
        else:
            del self._offers[number], self._pinned[number]

    def on_stored(self, event: VoteStored) -> None:
        """Send and count an own message whose votes are stored. If its round has ended, do not send the message."""
        message, votes, known = event.message, event.votes, self.memory.prepared
        if known is not None and (votes.prepared is None or votes.prepared.round < known.round):
            # a prepared certificate was stored while this vote was written, so keep that certificate
            votes = DurableVotes(votes.height, votes.round, votes.vote, known)
        self.memory = votes
        if message.round == self.current:
            self._send(message)
            event.order.then(message)

    def on_refused(self, stored: VoteRecord, now: float) -> None:
        """Drop an own message, because another node with the same key has voted differently. Move to the round of that
        vote.

        The other node may have stopped before it sent its round change, so this node repeats the round change.
        """
        self.notes.append(f"a vote was not sent: another node with this key has stored {stored}")
        if stored.round > self.current:
            prepared = self.memory.prepared
            has_proof = (NOT_PREPARED if prepared is None else prepared.round) >= stored.prepared_round
            if stored.vote is None and has_proof:
                self._change_round(stored.round, now)
            else:
                self._start_round(stored.round, now)

    # --- messages -------------------------------------------------------------------------------

    def on_message(self, message: BftMessage, peer: Address | None, now: float) -> bool:
        """Handle a message of this height, signed by one of its validators and sent by `peer`.

        Votes are relayed at once. Proposals and round changes have unsigned parts, so they are relayed after a check.
        Returns False if the message was dropped because of its sender; a copy from another peer then does not count as
        a duplicate.
        """
        author, round_number = message.author, message.round
        if author != self._me and self.reached.get(author, NOT_STARTED) < round_number:
            self.reached[author] = round_number
            if not self._has_gathered and self._is_quorum_here():
                self._has_gathered = True
                self._set_round_timer(now)
        if type(message) is Prepare or type(message) is Commit:
            self._relay(message, peer)
        if round_number < self.current:
            return True
        if type(message) is Prepare:
            if author != self.validator_set.proposer(round_number) or self._rules.proposer_prepares:
                if round_number > self.current:
                    self._early.add(message)
                elif self.round.add_prepare(message):
                    self._progress()
        elif type(message) is Commit:
            if round_number > self.current:
                self._early.add(message)
            elif self.round.add_commit(message):
                self._progress()
        elif type(message) is RoundChange:
            if self._take_round_change(message, now):
                self._relay(message, peer)
        elif type(message) is Proposal:
            return self._take_proposal(message, peer, now)
        return True

    def _take_proposal(self, proposal: Proposal, peer: Address | None, now: float) -> bool:
        """Check the first justified proposal of a round; its digest pins the round (consensus.md 2.9).

        An IBFT 2.0 proposer signs a digest of the header, so copies with another body may arrive. One copy per sender
        is stored. If the first body is wrong, the copy that the proposer itself sent is checked next.
        """
        number, digest = proposal.round, proposal.block.digest
        if number == self.current and self.round.proposal is not None:
            return True
        sender = peer if peer in self.validator_set.members else None
        offers = self._offers.get(number, [])
        if sender in self._wrong_body_peers or any(offer.peer == sender for offer in offers):
            return False
        if number in self._pinned:
            if not offers or self._pinned[number] != digest:
                return True
            if any(offer.proposal.block.encoded == proposal.block.encoded for offer in offers):
                return True
        elif len(self._offers) >= _MAX_CHECKED_ROUNDS:
            return False
        try:
            self._rules.check_proposal(proposal, self.validator_set, self._factory)
        except Unjustified as refusal:
            self.notes.append(f"a proposal of round {number} was dropped: {refusal}")
            return True
        offer = _Offer(proposal, sender, now)
        if offers:
            offers.insert(1 if sender == proposal.author else len(offers), offer)
        else:
            self._pinned[number] = digest
            self._offers[number] = [offer]
            self._emit(CheckProposal(proposal))
        return True

    def _take_round_change(self, message: RoundChange, now: float) -> bool:
        """Count a round change for a later round. Return whether the round change was valid and new."""
        target = message.round
        if target > MAX_ROUND:
            return False
        try:
            self._rules.check_round_change(message, self.validator_set)
        except Unjustified as refusal:
            self.notes.append(f"a round change to {target} was dropped: {refusal}")
            return False
        if not self.round_changes.add(message):
            return False
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

    # --- rounds ---------------------------------------------------------------------------------

    def _start_round(self, number: int, now: float) -> None:
        had_turn = self.current >= 0 and now >= self._turn_began
        if had_turn and self.round.proposal is None and self.current not in self._pinned:
            self._liveness.missed_turn(self.validator_set.proposer(self.current), self._turn_began)
        self.current = number
        self._turn_began = now
        self._said.clear()
        self.round = Round(number, self._factory.seal_author)
        self._building = None
        self._has_gathered = not self._needs_gathering()
        self._set_round_timer(now)
        self.round_changes.forget_below(number)
        for passed in [old for old in self._pinned if old < number]:
            del self._pinned[passed]
            self._offers.pop(passed, None)
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
        height, number, memory = self.validator_set.height, self.current, self.memory
        votes = memory if memory.round == number else DurableVotes(height, number, None, memory.prepared)
        self._cast(
            lambda: self._factory.round_change(height, number, memory.prepared),
            lambda message: votes,
            lambda message: self._count_round_change(message, now),
        )

    def _count_round_change(self, message: RoundChange, now: float) -> None:
        self._take_round_change(message, now)

    def _awaited(self, number: int) -> int:
        """Return the first round from `number` on whose proposer is not absent."""
        absent = self._liveness.absent(self.validator_set, self._me)
        while absent and self.validator_set.proposer(number) in absent:
            number += 1
        return number

    def _pass_over(self, now: float) -> None:
        """Leave the current round at once if its proposer is absent and has not proposed."""
        if self.round.proposal is None and self.current not in self._pinned:
            target = self._awaited(self.current)
            if target > self.current:
                self._change_round(target, now)

    def _needs_gathering(self) -> bool:
        """Whether this validator must stay in the round until a quorum has been in it for a whole timeout.

        With rounds of equal length, validators could follow each other forever without meeting in one round. So at the
        cap the timeout of a round starts when a quorum has arrived. Until then the round change is repeated. Below the
        cap the doubling timeouts bring validators together. Waiting never delays a proof: a validator that has prepared
        a block in this round has already received votes of a quorum.
        """
        return self.current > 0 and self.timing.is_capped(self.current) and not self._is_quorum_here()

    def _is_quorum_here(self) -> bool:
        here = sum(1 for number in self.reached.values() if number >= self.current)
        return here + 1 >= self.validator_set.quorum

    def _waits_for_transactions(self, now: float) -> bool:
        """Whether QBFT delays an empty block. If so, the validator restarts round 0 after the delay
        (consensus.md 3.5).
        """
        limit = self.head.timestamp + self.timing.empty_period_s
        if not self._rules.starts_on_block_timer or not self.timing.empty_period_s or now >= limit:
            return False
        self.current = NOT_STARTED
        self.round = Round(NOT_STARTED, self._factory.seal_author)
        self.expires_at = None
        self._emit(CancelTimer(TimerKind.ROUND))
        self._set_block_timer(min(limit, now + self.timing.period_s))
        return True

    # --- proposing and voting -------------------------------------------------------------------

    def _build(self, certificate: Certificate | None, timestamp: int, now: float) -> None:
        self._building = (self.current, certificate, now)
        timestamp = max(self.head.timestamp + int(self.timing.period_s), timestamp)
        self._emit(BuildProposal(self.head.hash, self.validator_set.height, self.current, timestamp))

    def _propose_again(self, certificate: Certificate, now: float) -> None:
        """Propose a block in a later round at once: the prepared block of the certificate, or else a new block."""
        if certificate.block is None:
            self._build(certificate, int(now), now)
        else:
            self._propose(self._factory.with_round(certificate.block, self.current), certificate, now)

    def _propose(self, block: Candidate, certificate: Certificate | None, begun_at: float) -> None:
        height, number = self.validator_set.height, self.current
        self._cast(
            lambda: self._factory.proposal(height, number, block, certificate),
            lambda proposal: self._with_vote(number, proposal.block.digest),
            lambda proposal: self._accept(proposal, begun_at),
        )

    def _accept(self, proposal: Proposal, proposed_at: float) -> None:
        if self.round.proposal is not None:
            return  # another node with the same validator key has already sent this proposal
        block = proposal.block
        self.proposed_at = proposed_at
        seal_hash = self._in_round(block).digest
        self.round.accept(proposal, seal_hash)
        if self._rules.proposer_prepares or proposal.author != self._me:
            height, number, digest = self.validator_set.height, self.current, block.digest
            self._cast(
                lambda: self._factory.prepare(height, number, digest),
                lambda prepare: self._with_vote(number, digest),
                self._count_prepare,
            )
        self._progress()

    def _count_prepare(self, prepare: Prepare) -> None:
        self.round.prepares[self._me] = prepare
        if self._defers_votes:
            self._progress()

    def _progress(self) -> None:
        """Send a commit once a quorum has prepared, and import the block once a quorum has committed."""
        round_ = self.round
        proposal = round_.proposal
        if proposal is None:
            return
        if not round_.has_committed and len(round_.prepares) >= self._prepares_needed:
            round_.has_committed = True
            self._commit(proposal)
        if not round_.is_decided and len(round_.commits) >= self.validator_set.quorum:
            round_.is_decided = True
            seals = tuple(vote.seal for vote in round_.commits.values())
            self._emit(ImportBlock(self._in_round(proposal.block), self.current, seals))

    def _commit(self, proposal: Proposal) -> None:
        signed = proposal.signed if self._rules.certifies_proposal else None
        number, seal_hash = self.current, self.round.seal_hash
        prepared = PreparedRound(number, proposal.block, tuple(self.round.prepares.values()), signed)
        height, digest = self.validator_set.height, proposal.block.digest
        self._cast(
            lambda: self._factory.commit(height, number, digest, seal_hash),
            lambda commit: DurableVotes(height, number, digest, prepared),
            self._count_commit,
        )

    def _count_commit(self, commit: Commit) -> None:
        self.round.commits[self._me] = commit
        if self._defers_votes:
            self._progress()

    def _in_round(self, block: Candidate) -> Candidate:
        """Return the block with the current round in its extra data, the form that validators seal
        (consensus.md 3.3).
        """
        return block if block.round == self.current else self._factory.with_round(block, self.current)

    def _with_vote(self, number: int, digest: Hash32) -> DurableVotes:
        memory = self.memory
        if memory.round == number and memory.vote == digest:
            return memory
        return DurableVotes(self.validator_set.height, number, digest, memory.prepared)

    # --- effects --------------------------------------------------------------------------------

    def _cast(
        self, sign: Callable[[], _Message], votes: Callable[[_Message], DurableVotes], then: Callable[[_Message], None]
    ) -> None:
        """Sign an own message, store its votes, send it, then count it.

        A validator without other validators stores and sends nothing, unless several nodes share its key.
        """
        if self._defers_votes:
            order = CastVote(
                self.validator_set.height,
                self.current,
                sign,
                cast("Callable[[BftMessage], DurableVotes]", votes),
                cast("Callable[[BftMessage], None]", then),
            )
            self._emit(order)
            return
        message = sign()
        self.memory = votes(message)
        if not self._is_alone:
            if self.memory is not self._remembered:
                self._remembered = self.memory
                self._emit(Remember(self.memory))
            self._send(message)
        then(message)

    def _send(self, message: BftMessage) -> None:
        self._said[type(message)] = message
        self._emit(Multicast(message))

    def _set_block_timer(self, at: float) -> None:
        self.block_due = at
        self._emit(SetTimer(TimerKind.BLOCK, at, BlockTimer(self.validator_set.height)))

    def _set_round_timer(self, now: float) -> None:
        self.expires_at = now + self.timing.timeout(self.current)
        self._emit(SetTimer(TimerKind.ROUND, self.expires_at, RoundTimer(self.validator_set.height, self.current)))

    def has_voted_for(self, block_hash: Hash32) -> bool:
        """Whether this validator has voted for a block."""
        proposal, prepared = self.round.proposal, self.memory.prepared
        return (proposal is not None and proposal.block.hash == block_hash) or (
            prepared is not None and prepared.block.hash == block_hash
        )

    def footprint(self) -> int:
        """Number of stored messages of other validators. The number is at most a multiple of the number of
        validators.
        """
        return (
            len(self._early)
            + len(self.round_changes)
            + sum(map(len, self._offers.values()))
            + len(self._pinned)
            + len(self._wrong_body_peers)
            + len(self.round.prepares)
            + len(self.round.commits)
        )


def _name(peer: Address | None) -> str:
    return "a peer that is no validator" if peer is None else f"0x{peer.hex()}"
