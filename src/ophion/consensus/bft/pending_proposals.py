"""`PendingProposals`: the proposals of one height that are being checked.

The first justified proposal of a round pins the round to its digest (consensus.md 2.9). An IBFT 2.0 proposer signs a
digest of the header, so copies with another body may arrive. One copy per sender is stored. If the body being checked
is wrong, another copy is checked: first the copy that the proposer itself sent.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple

from ophion.consensus.bft.messages import Proposal
from ophion.primitives.types import Address, Hash32

_MAX_CHECKED_ROUNDS: Final = 8
"""Maximum number of rounds whose proposals are being checked. Honest networks check one round at a time."""


class PendingProposal(NamedTuple):
    """A justified proposal and the peer that sent it."""

    proposal: Proposal
    peer: Address | None
    at: float
    """Time at which the proposal arrived."""


class ProposalAction(Enum):
    """What to do with a proposal that arrives."""

    WANTED = auto()
    """Check the justification of the proposal, then add the proposal."""
    KNOWN = auto()
    """Ignore the proposal, because the round already has this proposal or another one."""
    REFUSED = auto()
    """Ignore the proposal: its sender has already sent a proposal of this round or a wrong body, or too many rounds
    have proposals. A copy from another peer is accepted.
    """


class PendingProposals:
    """The proposals of one height that wait for their check, by round."""

    def __init__(self) -> None:
        self._offers: dict[int, list[PendingProposal]] = {}
        """Proposals by round: first the proposal being checked, then the copies to check if its body is wrong."""
        self._pinned: dict[int, Hash32] = {}
        """The digest that the proposer of each round signed, by round. Proposals with other digests are ignored."""
        self._wrong_body_peers: set[Address | None] = set()
        """Peers that sent a proposal with a wrong body."""

    def __len__(self) -> int:
        """Number of entries, as a measure of memory: proposals, rounds with a proposal, and senders."""
        return sum(map(len, self._offers.values())) + len(self._pinned) + len(self._wrong_body_peers)

    def is_pinned(self, round_number: int) -> bool:
        """Whether a round has a justified proposal. A round accepts no second digest."""
        return round_number in self._pinned

    def state(self, proposal: Proposal, sender: Address | None) -> ProposalAction:
        """Return what to do with a proposal from this sender."""
        number = proposal.round
        offers = self._offers.get(number, [])
        if sender in self._wrong_body_peers or any(offer.peer == sender for offer in offers):
            return ProposalAction.REFUSED
        if number in self._pinned:
            if not offers or self._pinned[number] != proposal.block.digest:
                return ProposalAction.KNOWN
            if any(offer.proposal.block.encoded == proposal.block.encoded for offer in offers):
                return ProposalAction.KNOWN
        elif len(self._offers) >= _MAX_CHECKED_ROUNDS:
            return ProposalAction.REFUSED
        return ProposalAction.WANTED

    def add(self, offer: PendingProposal) -> bool:
        """Add a justified proposal. Returns True for the first proposal of a round, which must be checked now."""
        number = offer.proposal.round
        offers = self._offers.get(number)
        if offers:
            offers.insert(1 if offer.peer == offer.proposal.author else len(offers), offer)
            return False
        self._pinned[number] = offer.proposal.block.digest
        self._offers[number] = [offer]
        return True

    def checked(self, round_number: int, digest: Hash32) -> PendingProposal | None:
        """Remove and return the proposal whose check has ended. Returns None if the round of the proposal has
        passed.
        """
        offers = self._offers.get(round_number)
        if not offers or offers[0].proposal.block.digest != digest:
            return None
        return offers.pop(0)

    def close(self, round_number: int) -> None:
        """Drop the other copies of a proposal whose body matches its header. The round accepts no other digest, even if
        the block is invalid.
        """
        del self._offers[round_number]

    def another_copy(self, round_number: int, peer: Address | None) -> Proposal | None:
        """Return another copy of a proposal, after the copy of `peer` had a wrong body. If there is no other copy, the
        round accepts any proposal again.
        """
        self._wrong_body_peers.add(peer)
        offers = self._offers[round_number]
        if offers:
            return offers[0].proposal
        del self._offers[round_number], self._pinned[round_number]
        return None

    def forget_below(self, round_number: int) -> None:
        """Drop the proposals of earlier rounds."""
        for passed in [old for old in self._pinned if old < round_number]:
            del self._pinned[passed]
            self._offers.pop(passed, None)
