"""IBFT 2.0: message encoding and justification rules (consensus.md 2).

Numbers have fixed widths, an absent value is an empty byte string, and a round change signs its proof of preparation.
The proposal counts as the proposer's prepare, so Q - 1 prepares of other validators complete a quorum.
"""

from __future__ import annotations

from typing import Final

from ophion.consensus.bft.client_profiles import WireProfile
from ophion.consensus.bft.extra_data import (
    Ibft2ExtraData,
)
from ophion.consensus.bft.justification import (
    check_prepares,
    check_proposer,
    check_round_changes,
    check_same_block,
    check_target,
    prepared_block,
)
from ophion.consensus.bft.message_codec import MessageCodec, ProposalParts, RoundChangeParts
from ophion.consensus.bft.messages import (
    MessageKind,
    PreparedClaim,
    PreparedRound,
    Proposal,
    ProposedBlock,
    RawMessage,
    RoundChange,
    SignedProposal,
    SignedRoundChange,
    Unjustified,
)
from ophion.consensus.bft.protocol import BlockForms
from ophion.consensus.bft.round_change import Certificate
from ophion.consensus.bft.signed_parts import (
    SignedParts,
    WireStyle,
    access_list_slot,
    exactly,
    one_of,
    plain_bytes,
)
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives import rlp
from ophion.primitives.types import HASH_LENGTH

_ROUND_BYTES: Final = 4
_HEIGHT_BYTES: Final = 8

_STYLE: Final = WireStyle(
    codes=(0, 1, 2, 3),
    write_height=lambda height: b"\x88" + height.to_bytes(_HEIGHT_BYTES, "big"),
    write_round=lambda number: b"\x84" + number.to_bytes(_ROUND_BYTES, "big"),
    read_height=lambda encoded: int.from_bytes(plain_bytes(encoded, _HEIGHT_BYTES, "sequence"), "big"),
    read_round=lambda encoded: int.from_bytes(plain_bytes(encoded, _ROUND_BYTES, "round"), "big"),
    signed_bytes=lambda code, payload: bytes((code,)) + payload,
    absent=rlp.EMPTY_STRING,
)


class Ibft2(Ibft2ExtraData, MessageCodec):
    """The rules and the message encoding of IBFT 2.0."""

    name = "ibft2"
    style = _STYLE
    subprotocol = ("IBF", 1, 4)
    """Name and version of the devp2p protocol, and its number of message codes."""
    proposer_prepares = False
    starts_on_block_timer = False
    certifies_proposal = True
    binds_round = True
    """Whether the block in a proposal must contain the round of the proposal."""
    no_round_changes = None

    # --- reading and writing messages -----------------------------------------------------------

    def _read_round_change(self, raw: RawMessage, parts: SignedParts, fingerprint: bytes) -> RoundChange:
        items = one_of(rlp.split_list(raw.data, 3), (2, 3), "round change")
        signed = self._signed_round_change(items[0], parts)
        return RoundChange(signed, self.prepared_block(items[1]), (), fingerprint, raw)

    def _read_claim(self, encoded: bytes, parts: SignedParts) -> PreparedClaim:
        proposal_item, prepares = exactly(rlp.split_list(encoded, 2), 2, "prepared certificate")
        proposal = _read_signed_proposal(proposal_item, parts)
        return PreparedClaim(proposal.round, proposal.digest, proposal, parts.prepares(prepares))

    def _read_proposal(self, raw: RawMessage, parts: SignedParts, fingerprint: bytes) -> Proposal:
        items = one_of(rlp.split_list(raw.data, 4), (3, 4), "proposal")
        certificate = None
        if items[2] != rlp.EMPTY_STRING:
            (listed,) = exactly(rlp.split_list(items[2], 1), 1, "round change certificate")
            certificate = tuple(self._signed_round_change(item, parts) for item in parts.split(listed))
        signed = _read_signed_proposal(items[0], parts)
        return Proposal(signed, self.candidate(items[1]), certificate, (), fingerprint, raw)

    def signed_proposal(self, data: bytes) -> SignedProposal:
        return _read_signed_proposal(data, self.signed_parts())

    def _proposal_parts(self, block: ProposedBlock, why: Certificate | None, profile: WireProfile) -> ProposalParts:
        certificate = rlp.EMPTY_STRING
        if why is not None:
            certificate = rlp.list_of([rlp.list_of([part.encoded for part in why.round_changes])])
        beside = [block.encoded, certificate, *access_list_slot(profile)]
        return ProposalParts([rlp.encode_bytes(block.digest)], beside)

    def _round_change_parts(self, prepared: PreparedRound | None, profile: WireProfile) -> RoundChangeParts:
        slot = access_list_slot(profile)
        if prepared is None or prepared.proposal is None:
            return RoundChangeParts(None, [rlp.EMPTY_STRING], [rlp.EMPTY_STRING, *slot])
        claim = PreparedClaim(prepared.round, prepared.digest, prepared.proposal, prepared.prepares)
        prepares = rlp.list_of([prepare.raw.data for prepare in prepared.prepares])
        proof = rlp.list_of([prepared.proposal.encoded, prepares])
        return RoundChangeParts(claim, [proof], [prepared.block.encoded, *slot])

    # --- rules ----------------------------------------------------------------------------------

    def prepares_needed(self, validator_set: ValidatorSet) -> int:
        """Return quorum - 1, because the proposal counts as the proposer's prepare."""
        return validator_set.quorum - 1

    def check_round_change(self, message: RoundChange, validator_set: ValidatorSet) -> None:
        """Check block and proof of a round change. Does not execute the block, because a quorum has already executed
        it.
        """
        _check_proof(message.signed, validator_set)
        prepared = prepared_block(message, validator_set)
        if prepared is not None and prepared.block.round != prepared.claim.round:
            raise Unjustified("the block is not the prepared one")

    def check_proposal(self, proposal: Proposal, validator_set: ValidatorSet, forms: BlockForms) -> None:
        """Check a proposal by rules 1, 3 and 4 of consensus.md 2.9."""
        block, number = proposal.block, proposal.round
        check_proposer(proposal, validator_set)
        if proposal.signed.digest != block.digest or block.height != validator_set.height or block.round != number:
            raise Unjustified("the block is not the one that was signed for this round")
        changes = proposal.round_changes
        if number == 0:
            if changes is not None:
                raise Unjustified("a certificate in round 0")
            return
        if changes is None:
            raise Unjustified("no certificate in a later round")
        check_round_changes(changes, number, validator_set)
        for change in changes:
            _check_proof(change, validator_set)
        claims = [change.claim for change in changes if change.claim is not None]
        if claims:
            latest = max(claims, key=lambda claim: claim.round)
            check_same_block(block, (latest.round,), latest.digest, forms)


def _check_proof(change: SignedRoundChange, validator_set: ValidatorSet) -> None:
    """Check the proof inside a round change, if any: a signed proposal, and quorum - 1 prepares of other validators."""
    check_target(change)
    claim = change.claim
    if claim is None:
        return
    proposal, proposer = claim.proposal, validator_set.proposer(claim.round)
    if proposal is None or proposal.height != validator_set.height or proposal.author != proposer:
        raise Unjustified("the prepared proposal is of another height or author")
    check_prepares(claim.prepares, validator_set.quorum - 1, claim.round, claim.digest, validator_set)
    if any(prepare.author == proposer for prepare in claim.prepares):
        raise Unjustified("a prepare of the proposer")


def _read_signed_proposal(encoded: bytes, parts: SignedParts) -> SignedProposal:
    part = parts.read(MessageKind.PROPOSAL, encoded, 1)
    digest = plain_bytes(part.fields[0], HASH_LENGTH, "digest")
    return SignedProposal(part.height, part.round, digest, part.author, encoded)
