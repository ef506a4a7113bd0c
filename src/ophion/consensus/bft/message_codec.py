"""What both protocols have in common: extra data, reading and writing messages.

A protocol adds what differs: its `WireStyle`, the forms of votes and rounds in extra data, which parts of a proposal or
a round change are signed and which stand beside the signed part, and what justifies them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Final, NamedTuple

from ophion.consensus.bft.client_profiles import Profile
from ophion.consensus.bft.extra_data import (
    BftExtraData,
    ExtraForm,
    read_seals,
    read_validators,
    read_vanity,
    split_items,
)
from ophion.consensus.bft.message_encoding import MAX_SIGNATURES, SignedParts, WireStyle, candidate_of, check_body
from ophion.consensus.bft.messages import (
    BftMessage,
    Candidate,
    MessageKind,
    Prepare,
    PreparedClaim,
    PreparedRound,
    Proposal,
    RawMessage,
    RoundChange,
    SignedProposal,
    SignedRoundChange,
)
from ophion.consensus.bft.round_change import Certificate
from ophion.consensus.bft.signatures import DigestSigner
from ophion.consensus.engine import Vote
from ophion.native.crypto import keccak256
from ophion.primitives import rlp

_NEWCOMERS: Final = 3
"""A message may be about a height some blocks ahead, each of which may have added a validator."""


def signatures_expected(validators: int) -> int:
    """The most signatures an honest message carries in a network of this size.

    That is an IBFT 2.0 proposal of a later round: a round change of every validator, each with a proposal and a prepare
    of each validator. A message with more is an attack on the time of others.
    """
    count = validators + _NEWCOMERS
    return min(MAX_SIGNATURES, 1 + count * (count + 2))


class ProposalParts(NamedTuple):
    """A proposal before it is signed."""

    signed: list[bytes]
    """What is signed, behind height and round."""
    beside: list[bytes]
    """What the message carries beside the signed part."""


class RoundChangeParts(NamedTuple):
    """A round change before it is signed."""

    claim: PreparedClaim | None
    signed: list[bytes]
    beside: list[bytes]
    prepares: tuple[Prepare, ...] = ()
    """Prepares that travel beside the signed part."""


class MessageCodec(ABC):
    """A protocol, but for what the two differ in; without state, so one value serves everybody."""

    style: ClassVar[WireStyle]
    allows_more_extra: ClassVar[bool]
    """Whether items behind the fifth of the extra data are ignored; they are refused otherwise."""
    no_round_changes: ClassVar[tuple[SignedRoundChange, ...] | None]
    """What a proposal of round 0 carries for a certificate: an empty one, or none."""

    # --- extra data -----------------------------------------------------------------------------

    def decode_extra(self, data: bytes) -> BftExtraData:
        """`DecodeError` for anything else than the full form."""
        items = split_items(data, 5, exactly=not self.allows_more_extra)
        vanity, validators, vote, round_item, seals = items[:5]
        return BftExtraData(
            read_vanity(vanity),
            read_validators(validators),
            self._read_vote(vote),
            self._read_extra_round(round_item),
            read_seals(seals),
        )

    @abstractmethod
    def encode_extra(self, extra: BftExtraData, form: ExtraForm) -> bytes: ...

    @abstractmethod
    def _read_vote(self, item: rlp.Item) -> Vote | None: ...

    @abstractmethod
    def _read_extra_round(self, item: rlp.Item) -> int: ...

    # --- reading --------------------------------------------------------------------------------

    def decode(self, raw: RawMessage, most_signatures: int = MAX_SIGNATURES) -> BftMessage:
        """A message off the wire, in either profile; `DecodeError` when it is none."""
        parts = SignedParts(self.style, most_signatures)
        kind = self.style.kind(raw.code)
        fingerprint = keccak256(raw.data)
        if kind is MessageKind.PREPARE:
            return parts.prepare(raw.data, fingerprint)
        if kind is MessageKind.COMMIT:
            return parts.commit(raw.data, fingerprint)
        if kind is MessageKind.ROUND_CHANGE:
            return self._read_round_change(raw, parts, fingerprint)
        return self._read_proposal(raw, parts, fingerprint)

    def prepare(self, data: bytes) -> Prepare:
        """A prepare as a certificate or the memory holds it."""
        return self.signed_parts().prepare(data)

    def candidate(self, block: bytes) -> Candidate:
        """A block with its digest and hash."""
        return candidate_of(self, block)

    def prepared_block(self, block: bytes) -> Candidate | None:
        """The block that a round change carries, if any; `DecodeError` when its body is not its own."""
        if block == self.style.absent:
            return None
        found = candidate_of(self, block)
        check_body(block)
        return found

    def signed_parts(self) -> SignedParts:
        """Reader and writer of prepares and commits."""
        return SignedParts(self.style)

    def _signed_round_change(self, encoded: bytes, parts: SignedParts) -> SignedRoundChange:
        part = parts.read(MessageKind.ROUND_CHANGE, encoded, 1)
        claim = None if part.fields[0] == self.style.absent else self._read_claim(part.fields[0], parts)
        return SignedRoundChange(part.height, part.round, claim, part.author, encoded)

    @abstractmethod
    def signed_proposal(self, data: bytes) -> SignedProposal:
        """The signed part of a proposal as a certificate or the memory holds it."""

    @abstractmethod
    def _read_proposal(self, raw: RawMessage, parts: SignedParts, fingerprint: bytes) -> Proposal: ...

    @abstractmethod
    def _read_round_change(self, raw: RawMessage, parts: SignedParts, fingerprint: bytes) -> RoundChange: ...

    @abstractmethod
    def _read_claim(self, encoded: bytes, parts: SignedParts) -> PreparedClaim:
        """What a round change says its author had prepared."""

    # --- writing --------------------------------------------------------------------------------

    def write_proposal(
        self,
        height: int,
        round_number: int,
        block: Candidate,
        why: Certificate | None,
        profile: Profile,
        signer: DigestSigner,
    ) -> Proposal:
        """A block for a round, in the hand of its proposer."""
        parts = self._proposal_parts(block, why, profile)
        signed, raw = self._sign(MessageKind.PROPOSAL, height, round_number, parts, signer)
        return Proposal(
            SignedProposal(height, round_number, block.digest, signer.address, signed),
            block,
            self.no_round_changes if why is None else why.round_changes,
            () if why is None else why.prepares,
            raw=raw,
        )

    def write_round_change(
        self, height: int, round_number: int, prepared: PreparedRound | None, profile: Profile, signer: DigestSigner
    ) -> RoundChange:
        """The wish for a later round, with what had been prepared before."""
        parts = self._round_change_parts(prepared, profile)
        signed, raw = self._sign(MessageKind.ROUND_CHANGE, height, round_number, parts, signer)
        return RoundChange(
            SignedRoundChange(height, round_number, parts.claim, signer.address, signed),
            None if prepared is None or parts.claim is None else prepared.block,
            parts.prepares,
            keccak256(raw.data),
            raw,
        )

    def _sign(
        self,
        kind: MessageKind,
        height: int,
        round_number: int,
        parts: ProposalParts | RoundChangeParts,
        signer: DigestSigner,
    ) -> tuple[bytes, RawMessage]:
        signed = self.signed_parts().write(kind, height, round_number, parts.signed, signer)
        return signed, RawMessage(self.style.codes[kind], rlp.list_of([signed, *parts.beside]))

    @abstractmethod
    def _proposal_parts(self, block: Candidate, why: Certificate | None, profile: Profile) -> ProposalParts: ...

    @abstractmethod
    def _round_change_parts(self, prepared: PreparedRound | None, profile: Profile) -> RoundChangeParts: ...
