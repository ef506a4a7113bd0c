"""Justification checks that both protocols share. `Qbft.check_proposal` (qbft_messages.py) and `Ibft2.check_proposal`
apply them. A failed check raises `Unjustified`.

`RoundChanges.certificate` (round_change.py) composes the certificate of a proposal. `prepare_commit.py` composes the
prepared round that a round change carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ophion.consensus.bft.messages import (
    Prepare,
    PreparedClaim,
    Proposal,
    ProposedBlock,
    RoundChange,
    SignedRoundChange,
    Unjustified,
)
from ophion.consensus.bft.protocol import BlockForms
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Address, Hash32


def check_authors(authors: Sequence[Address], needed: int, what: str) -> None:
    """Check that the number of messages suffices and that all authors differ."""
    if len(authors) < needed:
        raise Unjustified(f"{len(authors)} {what} where {needed} are needed")
    if len(set(authors)) != len(authors):
        raise Unjustified(f"two {what} of one author")


def check_target(change: SignedRoundChange) -> None:
    """Check that a round change requests a round above 0, and that its prepared block is from an earlier round."""
    if change.round < 1:
        raise Unjustified("round 0 cannot be asked for")
    if change.claim is not None and change.claim.round >= change.round:
        raise Unjustified("prepared in a round that is not earlier")


def check_round_changes(changes: Sequence[SignedRoundChange], number: int, validator_set: ValidatorSet) -> None:
    """Check that a quorum of round changes requests exactly this round. Does not check their prepared blocks."""
    check_authors([change.author for change in changes], validator_set.quorum, "round changes")
    for change in changes:
        if (
            change.height != validator_set.height
            or change.round != number
            or change.author not in validator_set.members
        ):
            raise Unjustified("a round change of another round or not by a validator")


def check_prepares(
    prepares: Sequence[Prepare], needed: int, number: int, digest: Hash32, validator_set: ValidatorSet
) -> None:
    """Check that enough validators prepared this block in this round."""
    check_authors([prepare.author for prepare in prepares], needed, "prepares")
    for prepare in prepares:
        if prepare.height != validator_set.height or prepare.round != number or prepare.digest != digest:
            raise Unjustified("a prepare for something else")
        if prepare.author not in validator_set.members:
            raise Unjustified("a prepare not by a validator")


def check_proposer(proposal: Proposal, validator_set: ValidatorSet) -> None:
    """Check that the author is the proposer of the round."""
    if proposal.author != validator_set.proposer(proposal.round):
        raise Unjustified("its author is not the proposer of the round")


def check_same_block(block: ProposedBlock, rounds: Sequence[int], digest: Hash32, forms: BlockForms) -> None:
    """Check that the proposal repeats the prepared block, with one of `rounds` in its extra data."""
    if all(forms.with_round(block, number).digest != digest for number in rounds):
        raise Unjustified("another block was prepared before")


class PreparedBlock(NamedTuple):
    """The prepared round and digest in a round change, and the block attached to the message."""

    claim: PreparedClaim
    block: ProposedBlock


def prepared_block(message: RoundChange, validator_set: ValidatorSet) -> PreparedBlock | None:
    """Return the prepared block of a round change. Returns None if the round change has no prepared block. Raises if
    the block does not match the claimed digest.
    """
    claim, block = message.signed.claim, message.block
    if claim is None or block is None:
        if claim is not None or block is not None:
            raise Unjustified("a block without a claim of preparation, or the reverse")
        return None
    if block.digest != claim.digest or block.height != validator_set.height:
        raise Unjustified("the block is not the prepared one")
    return PreparedBlock(claim, block)
