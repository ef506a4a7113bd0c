"""QBFT: message encoding and justification rules (consensus.md 3).

Numbers are scalars, an absent value is an empty list, and the signed proposal contains the whole block. The prepares of
a round change are outside its signed part. Every validator prepares, including the proposer.
"""

from __future__ import annotations

from typing import Final

from ophion.consensus.bft.client_profiles import WireProfile
from ophion.consensus.bft.extra_data import (
    QbftExtraData,
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
    scalar_below,
)
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives import rlp
from ophion.primitives.types import HASH_LENGTH, Hash32

_ROUND_LIMIT: Final = 2**32
_HEIGHT_LIMIT: Final = 2**63
_MAX_FORMS: Final = 64
"""Maximum number of rounds tried to find the round in the extra data of a re-proposed block."""

_STYLE: Final = WireStyle(
    codes=(0x12, 0x13, 0x14, 0x15),
    write_height=rlp.encode_int,
    write_round=rlp.encode_int,
    read_height=lambda encoded: scalar_below(encoded, _HEIGHT_LIMIT, "sequence"),
    read_round=lambda encoded: scalar_below(encoded, _ROUND_LIMIT, "round"),
    signed_bytes=lambda code, payload: rlp.list_of([rlp.encode_int(code), payload]),
    absent=rlp.EMPTY_LIST,
)


class Qbft(QbftExtraData, MessageCodec):
    """The rules and the message encoding of QBFT."""

    name = "qbft"
    style = _STYLE
    subprotocol = ("istanbul", 100, 22)
    """Name and version of the devp2p protocol, and its number of message codes."""
    proposer_prepares = True
    starts_on_block_timer = True
    certifies_proposal = False
    binds_round = False
    """Whether the block in a proposal must contain the round of the proposal (consensus.md 3.4)."""
    no_round_changes = ()

    # --- reading and writing messages -----------------------------------------------------------

    def _read_round_change(self, raw: RawMessage, parts: SignedParts, fingerprint: bytes) -> RoundChange:
        items = one_of(rlp.split_list(raw.data, 4), (3, 4), "round change")
        signed = self._signed_round_change(items[0], parts)
        return RoundChange(signed, self.prepared_block(items[1]), parts.prepares(items[-1]), fingerprint, raw)

    def _read_claim(self, encoded: bytes, parts: SignedParts) -> PreparedClaim:
        round_item, digest_item = exactly(rlp.split_list(encoded, 2), 2, "prepared round")
        digest = plain_bytes(digest_item, HASH_LENGTH, "prepared digest")
        return PreparedClaim(scalar_below(round_item, _ROUND_LIMIT, "prepared round"), digest)

    def _read_proposal(self, raw: RawMessage, parts: SignedParts, fingerprint: bytes) -> Proposal:
        signed_item, justification = exactly(rlp.split_list(raw.data, 2), 2, "proposal")
        part = parts.read(MessageKind.PROPOSAL, signed_item, 1, 2)
        block = self.candidate(part.fields[0])
        changes, prepares = exactly(rlp.split_list(justification, 2), 2, "justification")
        return Proposal(
            SignedProposal(part.height, part.round, block.digest, part.author, signed_item),
            block,
            tuple(self._signed_round_change(item, parts) for item in parts.split(changes)),
            parts.prepares(prepares),
            fingerprint,
            raw,
        )

    def signed_proposal(self, data: bytes) -> SignedProposal:
        part = self.signed_parts().read(MessageKind.PROPOSAL, data, 1, 2)
        digest = self.candidate(part.fields[0]).digest
        return SignedProposal(part.height, part.round, digest, part.author, part.encoded)

    def _proposal_parts(self, block: ProposedBlock, why: Certificate | None, profile: WireProfile) -> ProposalParts:
        changes = why.round_changes if why is not None else ()
        prepares = why.prepares if why is not None else ()
        justification = rlp.list_of(
            [
                rlp.list_of([change.encoded for change in changes]),
                rlp.list_of([prepare.raw.data for prepare in prepares]),
            ]
        )
        return ProposalParts([block.encoded, *access_list_slot(profile)], [justification])

    def _round_change_parts(self, prepared: PreparedRound | None, profile: WireProfile) -> RoundChangeParts:
        slot = access_list_slot(profile)
        if prepared is None:
            return RoundChangeParts(None, [rlp.EMPTY_LIST], [rlp.EMPTY_LIST, *slot, rlp.EMPTY_LIST])
        claim = PreparedClaim(prepared.round, prepared.digest)
        metadata = rlp.encode([prepared.round, prepared.digest])
        prepares = rlp.list_of([prepare.raw.data for prepare in prepared.prepares])
        return RoundChangeParts(claim, [metadata], [prepared.block.encoded, *slot, prepares], prepared.prepares)

    # --- rules ----------------------------------------------------------------------------------

    def prepares_needed(self, validator_set: ValidatorSet) -> int:
        """Return a full quorum, because the proposer also sends a prepare."""
        return validator_set.quorum

    def check_round_change(self, message: RoundChange, validator_set: ValidatorSet) -> None:
        """Check the claimed prepared block against the prepares sent with it.

        Other clients also execute the block at this point. Ophion executes it later, before it votes for the block in
        the new round. That is safe, because an honest validator of the quorum has executed the block already.
        """
        check_target(message.signed)
        prepared = prepared_block(message, validator_set)
        if prepared is not None:
            claim = prepared.claim
            check_prepares(message.prepares, validator_set.quorum, claim.round, claim.digest, validator_set)

    def check_proposal(self, proposal: Proposal, validator_set: ValidatorSet, forms: BlockForms) -> None:
        """Check a proposal by the rules of consensus.md 3.4."""
        block, number = proposal.block, proposal.round
        check_proposer(proposal, validator_set)
        if block.height != validator_set.height:
            raise Unjustified("the block is of another height")
        if block.round > number:
            # reject a block whose extra data names a later round: no later proposal could repeat the block, because
            # `check_same_block` tries only rounds up to the round in which the block was prepared
            raise Unjustified("the block names a later round")
        changes = proposal.round_changes or ()
        if number == 0:
            if changes or proposal.prepares:
                raise Unjustified("a justification in round 0")
            _check_builder(proposal)
            return
        check_round_changes(changes, number, validator_set)
        claims: dict[int, Hash32] = {}
        for change in changes:
            check_target(change)
            claim = change.claim
            if claim is not None and claims.setdefault(claim.round, claim.digest) != claim.digest:
                raise Unjustified("round changes that contradict each other")
        if not claims:
            if proposal.prepares:
                raise Unjustified("prepares where nothing was prepared")
            _check_builder(proposal)
            return
        latest = max(claims)
        # A block that is proposed again names a round in its extra data. Most clients write the round in which the
        # block was prepared, some write round 0. A malicious client may write any earlier round.
        check_same_block(block, (latest, 0, *range(1, min(latest, _MAX_FORMS))), claims[latest], forms)
        check_prepares(proposal.prepares, validator_set.quorum, latest, claims[latest], validator_set)


def _check_builder(proposal: Proposal) -> None:
    """Check that the proposer of a new block is also its builder. A block that is proposed again keeps its builder."""
    if proposal.block.builder != proposal.author:
        raise Unjustified("a new block that its proposer did not build")
    if proposal.block.round not in (0, proposal.round):
        raise Unjustified("a new block that names another round")
