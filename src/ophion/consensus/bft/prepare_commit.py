"""`RoundVoting`: proposes, prepares and commits in the current round of a height.

A commit follows a quorum of prepares, and the import of the block follows a quorum of commits. An own message counts
after its votes are stored (`OwnMessages`).
"""

from __future__ import annotations

from collections.abc import Callable

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import BftEffect, ImportBlock
from ophion.consensus.bft.messages import Commit, Prepare, PreparedRound, Proposal, ProposedBlock
from ophion.consensus.bft.own_messages import OwnMessages
from ophion.consensus.bft.protocol import MessageFactory, ProtocolRules
from ophion.consensus.bft.round import Round
from ophion.consensus.bft.round_change import Certificate
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Hash32


class RoundVoting:
    """The current round, and the votes of this validator in this round."""

    def __init__(
        self,
        rules: ProtocolRules,
        factory: MessageFactory,
        validator_set: ValidatorSet,
        own: OwnMessages,
        first_round: int,
        emit: Callable[[BftEffect], None],
    ) -> None:
        self.round = Round(first_round, factory.seal_author)
        self.proposed_at: float | None = None
        """Wall time at which the accepted proposal arrived, or at which this validator began to build it."""
        self._rules = rules
        self._factory = factory
        self._me = factory.address
        self._validator_set = validator_set
        self._own = own
        self._emit = emit
        self._prepares_needed = rules.prepares_needed(validator_set)

    def start(self, round_number: int) -> None:
        """Begin a round without a proposal."""
        self.round = Round(round_number, self._factory.seal_author)

    def propose(self, block: ProposedBlock, certificate: Certificate | None, begun_at: float) -> None:
        """Propose a block in the current round. `begun_at` is the time at which the build of the block began."""
        height, number = self._validator_set.height, self.round.number
        self._own.cast(
            number,
            lambda: self._factory.proposal(height, number, block, certificate),
            lambda proposal: self._own.with_vote(number, proposal.block.digest),
            lambda proposal: self.accept(proposal, begun_at),
        )

    def accept(self, proposal: Proposal, proposed_at: float) -> None:
        """Accept the proposal of this round. Send a prepare for its block, except as proposer of IBFT 2.0."""
        if self.round.proposal is not None:
            return  # another node with the same key has sent the same proposal
        block = proposal.block
        self.proposed_at = proposed_at
        seal_hash = self._in_round(block).digest
        self.round.accept(proposal, seal_hash)
        if self._rules.proposer_prepares or proposal.author != self._me:
            height, number, digest = self._validator_set.height, self.round.number, block.digest
            self._own.cast(
                number,
                lambda: self._factory.prepare(height, number, digest),
                lambda prepare: self._own.with_vote(number, digest),
                self._count_prepare,
            )
        self.progress()

    def progress(self) -> None:
        """Send a commit once a quorum has prepared, and import the block once a quorum has committed."""
        round_ = self.round
        proposal = round_.proposal
        if proposal is None:
            return
        if not round_.has_committed and len(round_.prepares) >= self._prepares_needed:
            round_.has_committed = True
            self._commit(proposal)
        if not round_.is_decided and len(round_.commits) >= self._validator_set.quorum:
            round_.is_decided = True
            seals = tuple(vote.seal for vote in round_.commits.values())
            self._emit(ImportBlock(self._in_round(proposal.block), round_.number, seals))

    def has_voted_for(self, block_hash: Hash32) -> bool:
        """Whether this validator has voted for a block at this height."""
        proposal, prepared = self.round.proposal, self._own.durable_votes.prepared
        return (proposal is not None and proposal.block.hash == block_hash) or (
            prepared is not None and prepared.block.hash == block_hash
        )

    def _commit(self, proposal: Proposal) -> None:
        signed = proposal.signed if self._rules.certifies_proposal else None
        number, seal_hash = self.round.number, self.round.seal_hash
        prepared = PreparedRound(number, proposal.block, tuple(self.round.prepares.values()), signed)
        height, digest = self._validator_set.height, proposal.block.digest
        if self._own.defers_votes:
            self._own.note_prepared(prepared)
        self._own.cast(
            number,
            lambda: self._factory.commit(height, number, digest, seal_hash),
            lambda commit: DurableVotes(height, number, digest, prepared),
            self._count_commit,
        )

    def _count_prepare(self, prepare: Prepare) -> None:
        self.round.prepares[self._me] = prepare
        if self._own.defers_votes:
            self.progress()

    def _count_commit(self, commit: Commit) -> None:
        self.round.commits[self._me] = commit
        if self._own.defers_votes:
            self.progress()

    def _in_round(self, block: ProposedBlock) -> ProposedBlock:
        """Return the block with the current round in its extra data, the form that validators seal
        (consensus.md 3.3).
        """
        number = self.round.number
        return block if block.round == number else self._factory.with_round(block, number)
