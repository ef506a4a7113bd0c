"""IBFT 2.0: its extra data, its messages on the wire and what justifies them (consensus.md 2).

Numbers have fixed widths, "absent" is an empty byte string, and a proof of preparation travels inside the signed part
of a round change. The proposer's proposal counts as its prepare, so Q - 1 prepares of others complete a quorum.
"""

from __future__ import annotations

from typing import Final

from ophion.consensus.bft.authorship import Signer
from ophion.consensus.bft.codec import MessageCodec
from ophion.consensus.bft.committee import Committee
from ophion.consensus.bft.dialect import BlockForms
from ophion.consensus.bft.extra_data import (
    ADD_MARK,
    BftExtraData,
    ExtraForm,
    read_seals,
    read_validators,
    read_vanity,
    read_vote,
    split_items,
)
from ophion.consensus.bft.justification import check_prepares, check_round_changes, check_target
from ophion.consensus.bft.messages import (
    Candidate,
    MessageKind,
    PreparedClaim,
    PreparedRound,
    Proposal,
    RawMessage,
    RoundChange,
    SignedProposal,
    SignedRoundChange,
    Unjustified,
)
from ophion.consensus.bft.profiles import Profile
from ophion.consensus.bft.round_change import Certificate
from ophion.consensus.bft.wire import (
    SignedParts,
    WireStyle,
    access_list_slot,
    exactly,
    one_of,
    plain_bytes,
)
from ophion.errors import DecodeError
from ophion.native.crypto import keccak256
from ophion.primitives import rlp
from ophion.primitives.types import HASH_LENGTH

_DROP_MARK: Final = b"\x00"
_ROUND_BYTES: Final = 4
_HEIGHT_BYTES: Final = 8

_STYLE: Final = WireStyle(
    codes=(0, 1, 2, 3),
    write_height=lambda height: b"\x88" + height.to_bytes(_HEIGHT_BYTES, "big"),
    write_round=lambda number: b"\x84" + number.to_bytes(_ROUND_BYTES, "big"),
    read_height=lambda encoded: int.from_bytes(plain_bytes(encoded, _HEIGHT_BYTES, "sequence"), "big"),
    read_round=lambda encoded: int.from_bytes(plain_bytes(encoded, _ROUND_BYTES, "round"), "big"),
    signed_bytes=lambda code, payload: bytes((code,)) + payload,
)


class Ibft2(MessageCodec):
    """The IBFT 2.0 dialect; without state, so one value serves everybody."""

    name = "ibft2"
    style = _STYLE
    subprotocol = ("IBF", 1, 4)
    """Name, version and number of codes."""
    proposer_prepares = False
    starts_on_block_timer = False
    certifies_proposal = True

    # --- extra data -----------------------------------------------------------------------------

    def encode_extra(self, extra: BftExtraData, form: ExtraForm) -> bytes:
        """Parts that a form leaves out are not written at all: the list has 3, 4 or 5 items."""
        vote = extra.vote
        items: list[rlp.Encodable] = [
            extra.vanity,
            extra.validators,
            b"" if vote is None else (vote.target, ADD_MARK if vote.authorize else _DROP_MARK),
        ]
        if form is not ExtraForm.FOR_HASH:
            items.append(extra.round.to_bytes(_ROUND_BYTES, "big"))
        if form is ExtraForm.FULL:
            items.append(extra.seals)
        return rlp.encode(items)

    def decode_extra(self, data: bytes) -> BftExtraData:
        """Strict: five items, a round of four bytes."""
        vanity, validators, vote, round_item, seals = split_items(data, 5, exactly=True)
        if isinstance(vote, bytes) and vote:
            raise DecodeError("vote is neither absent nor a list", "extra data")
        if not isinstance(round_item, bytes) or len(round_item) != _ROUND_BYTES:
            raise DecodeError(f"round is not {_ROUND_BYTES} bytes", "extra data")
        return BftExtraData(
            read_vanity(vanity),
            read_validators(validators),
            read_vote(vote, (_DROP_MARK,)) if isinstance(vote, list) else None,
            int.from_bytes(round_item, "big"),
            read_seals(seals),
        )

    # --- wire -----------------------------------------------------------------------------------

    def _read_round_change(self, raw: RawMessage, parts: SignedParts, fingerprint: bytes) -> RoundChange:
        items = one_of(rlp.split_list(raw.data), (2, 3), "round change")
        signed = _read_signed_round_change(items[0], parts)
        block = None if items[1] == rlp.EMPTY_STRING else self.prepared_block(items[1])
        return RoundChange(signed, block, (), fingerprint, raw)

    def _read_proposal(self, raw: RawMessage, parts: SignedParts, fingerprint: bytes) -> Proposal:
        items = one_of(rlp.split_list(raw.data), (3, 4), "proposal")
        certificate = None
        if items[2] != rlp.EMPTY_STRING:
            (listed,) = exactly(rlp.split_list(items[2]), 1, "round change certificate")
            certificate = tuple(_read_signed_round_change(item, parts) for item in rlp.split_list(listed))
        signed = _read_signed_proposal(items[0], parts)
        return Proposal(signed, self.candidate(items[1]), certificate, (), fingerprint, raw)

    def signed_proposal(self, data: bytes) -> SignedProposal:
        """The signed part of a proposal as a certificate or the memory holds it."""
        return _read_signed_proposal(data, self.signed_parts())

    def write_proposal(
        self,
        height: int,
        round_number: int,
        block: Candidate,
        why: Certificate | None,
        profile: Profile,
        signer: Signer,
    ) -> Proposal:
        fields = [rlp.encode_bytes(block.digest)]
        signed = self.signed_parts().write(MessageKind.PROPOSAL, height, round_number, fields, signer)
        certificate = rlp.EMPTY_STRING
        if why is not None:
            certificate = rlp.list_of([rlp.list_of([part.encoded for part in why.round_changes])])
        items = [signed, block.encoded, certificate, *access_list_slot(profile)]
        raw = RawMessage(_STYLE.codes[MessageKind.PROPOSAL], rlp.list_of(items))
        return Proposal(
            SignedProposal(height, round_number, block.digest, signer.address, signed),
            block,
            why.round_changes if why is not None else None,
            (),
            keccak256(raw.data),
            raw,
        )

    def write_round_change(
        self, height: int, round_number: int, prepared: PreparedRound | None, profile: Profile, signer: Signer
    ) -> RoundChange:
        claim, proof, block = None, rlp.EMPTY_STRING, rlp.EMPTY_STRING
        if prepared is not None and prepared.proposal is not None:
            claim = PreparedClaim(prepared.round, prepared.digest, prepared.proposal, prepared.prepares)
            proof = rlp.list_of(
                [prepared.proposal.encoded, rlp.list_of([prepare.raw.data for prepare in prepared.prepares])]
            )
            block = prepared.block.encoded
        signed = self.signed_parts().write(MessageKind.ROUND_CHANGE, height, round_number, [proof], signer)
        raw = RawMessage(
            _STYLE.codes[MessageKind.ROUND_CHANGE], rlp.list_of([signed, block, *access_list_slot(profile)])
        )
        return RoundChange(
            SignedRoundChange(height, round_number, claim, signer.address, signed),
            prepared.block if claim is not None and prepared is not None else None,
            (),
            keccak256(raw.data),
            raw,
        )

    # --- rules ----------------------------------------------------------------------------------

    def prepares_needed(self, committee: Committee) -> int:
        """The proposer's own vote is its proposal."""
        return committee.quorum - 1

    def check_round_change(self, message: RoundChange, committee: Committee) -> None:
        """Block and proof belong together, and the proof holds. The block is not executed: a quorum has done that."""
        signed, block = message.signed, message.block
        _check_proof(signed, committee)
        claim = signed.claim
        if claim is None or block is None:
            if claim is not None or block is not None:
                raise Unjustified("a block without a proof of preparation, or the reverse")
            return
        if block.digest != claim.digest or block.height != committee.height or block.round != claim.round:
            raise Unjustified("the block is not the prepared one")

    def check_proposal(self, proposal: Proposal, committee: Committee, forms: BlockForms) -> None:
        """consensus.md 2.9, rules 1, 3 and 4 of a proposal."""
        block, number = proposal.block, proposal.round
        if proposal.author != committee.proposer(number):
            raise Unjustified("its author is not the proposer of the round")
        if proposal.signed.digest != block.digest or block.height != committee.height or block.round != number:
            raise Unjustified("the block is not the one that was signed for this round")
        changes = proposal.round_changes
        if number == 0:
            if changes is not None:
                raise Unjustified("a certificate in round 0")
            return
        if changes is None:
            raise Unjustified("no certificate in a later round")
        check_round_changes(changes, number, committee)
        for change in changes:
            _check_proof(change, committee)
        claims = [change.claim for change in changes if change.claim is not None]
        if claims:
            latest = max(claims, key=lambda claim: claim.round)
            if forms.with_round(block, latest.round).digest != latest.digest:
                raise Unjustified("another block was prepared before")


def _check_proof(change: SignedRoundChange, committee: Committee) -> None:
    """What a round change claims is proved inside it: by a proposal of its proposer and Q - 1 prepares of others."""
    check_target(change)
    claim = change.claim
    if claim is None:
        return
    proposal, proposer = claim.proposal, committee.proposer(claim.round)
    if proposal is None or proposal.height != committee.height or proposal.author != proposer:
        raise Unjustified("the prepared proposal is of another height or author")
    check_prepares(claim.prepares, committee.quorum - 1, claim.round, claim.digest, committee)
    if any(prepare.author == proposer for prepare in claim.prepares):
        raise Unjustified("a prepare of the proposer")


def _read_signed_proposal(encoded: bytes, parts: SignedParts) -> SignedProposal:
    part = parts.read(MessageKind.PROPOSAL, encoded, 1)
    digest = plain_bytes(part.fields[0], HASH_LENGTH, "digest")
    return SignedProposal(part.height, part.round, digest, part.author, encoded)


def _read_signed_round_change(encoded: bytes, parts: SignedParts) -> SignedRoundChange:
    part = parts.read(MessageKind.ROUND_CHANGE, encoded, 1)
    claim = None
    if part.fields[0] != rlp.EMPTY_STRING:
        proposal_item, prepares = exactly(rlp.split_list(part.fields[0]), 2, "prepared certificate")
        proposal = _read_signed_proposal(proposal_item, parts)
        claim = PreparedClaim(proposal.round, proposal.digest, proposal, parts.prepares(prepares))
    return SignedRoundChange(part.height, part.round, claim, part.author, encoded)
