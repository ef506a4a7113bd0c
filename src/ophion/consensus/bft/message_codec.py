"""Encodes and decodes messages of both protocols; `signed_parts.py` has prepares and commits, `extra_data.py` the extra
data.

Each protocol adds its own parts: its `WireStyle`, the signed parts of proposals and round changes, and its
justification rules.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, Final, NamedTuple

from ophion.consensus.bft.client_profiles import WireProfile
from ophion.consensus.bft.extra_data import (
    ExtraDataCodec,
)
from ophion.consensus.bft.messages import (
    BftMessage,
    MessageKind,
    Prepare,
    PreparedClaim,
    PreparedRound,
    Proposal,
    ProposedBlock,
    RawMessage,
    RoundChange,
    SignedProposal,
    SignedRoundChange,
)
from ophion.consensus.bft.round_change import Certificate
from ophion.consensus.bft.signatures import DigestSigner
from ophion.consensus.bft.signed_parts import MAX_SIGNATURES, SignedParts, WireStyle, candidate_of, check_body
from ophion.native.crypto import keccak256
from ophion.primitives import rlp

_NEWCOMERS: Final = 3
"""Number of validators by which a sender's validator set may be larger than the set of this node, because the sender
may be a few blocks ahead.
"""


def signatures_expected(validators: int) -> int:
    """Return the maximum number of signatures in an honest message for a network of this size.

    The largest message is an IBFT 2.0 proposal of a later round. It contains a round change of every validator, and
    each round change contains a proposal and a prepare of each validator. More signatures are treated as an attack.
    """
    count = validators + _NEWCOMERS
    return min(MAX_SIGNATURES, 1 + count * (count + 2))


class ProposalParts(NamedTuple):
    """A proposal before it is signed."""

    signed: list[bytes]
    """Signed fields after height and round."""
    beside: list[bytes]
    """Unsigned fields of the message."""


class RoundChangeParts(NamedTuple):
    """A round change before it is signed."""

    claim: PreparedClaim | None
    signed: list[bytes]
    beside: list[bytes]
    prepares: tuple[Prepare, ...] = ()
    """Prepares of the prepared block, sent in the unsigned part of the message."""


class MessageCodec(ExtraDataCodec):
    """Base of both protocols. It has no state, so all callers share one instance."""

    style: ClassVar[WireStyle]
    no_round_changes: ClassVar[tuple[SignedRoundChange, ...] | None]
    """Value of `round_changes` in a proposal of round 0: an empty tuple, or None."""

    # --- reading --------------------------------------------------------------------------------

    def decode(self, raw: RawMessage, most_signatures: int = MAX_SIGNATURES) -> BftMessage:
        """Decode a received message in either wire profile (with or without the slot for a block access list). Raises
        `DecodeError` if the message is invalid.
        """
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
        """Decode a prepare message that a certificate or the stored votes contain."""
        return self.signed_parts().prepare(data)

    def candidate(self, block: bytes) -> ProposedBlock:
        """Return a block of a message as a proposed block, with its digest and hash."""
        return candidate_of(self, block)

    def prepared_block(self, block: bytes) -> ProposedBlock | None:
        """Return the block inside a round change, if any. Raises `DecodeError` if body and header do not match."""
        if block == self.style.absent:
            return None
        found = candidate_of(self, block)
        check_body(block)
        return found

    def signed_parts(self) -> SignedParts:
        """Return a reader and writer of signed parts, for one message."""
        return SignedParts(self.style)

    def _signed_round_change(self, encoded: bytes, parts: SignedParts) -> SignedRoundChange:
        part = parts.read(MessageKind.ROUND_CHANGE, encoded, 1)
        claim = None if part.fields[0] == self.style.absent else self._read_claim(part.fields[0], parts)
        return SignedRoundChange(part.height, part.round, claim, part.author, encoded)

    @abstractmethod
    def signed_proposal(self, data: bytes) -> SignedProposal:
        """Decode the signed part of a proposal, from a certificate or from stored votes."""

    @abstractmethod
    def _read_proposal(self, raw: RawMessage, parts: SignedParts, fingerprint: bytes) -> Proposal: ...

    @abstractmethod
    def _read_round_change(self, raw: RawMessage, parts: SignedParts, fingerprint: bytes) -> RoundChange: ...

    @abstractmethod
    def _read_claim(self, encoded: bytes, parts: SignedParts) -> PreparedClaim:
        """Decode the prepared block that a round change claims."""

    # --- writing --------------------------------------------------------------------------------

    def write_proposal(
        self,
        height: int,
        round_number: int,
        block: ProposedBlock,
        why: Certificate | None,
        profile: WireProfile,
        signer: DigestSigner,
    ) -> Proposal:
        """Sign a proposal of a block."""
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
        self, height: int, round_number: int, prepared: PreparedRound | None, profile: WireProfile, signer: DigestSigner
    ) -> RoundChange:
        """Sign a round change. `prepared` is the proof of the block prepared in an earlier round, if any."""
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
    def _proposal_parts(self, block: ProposedBlock, why: Certificate | None, profile: WireProfile) -> ProposalParts: ...

    @abstractmethod
    def _round_change_parts(self, prepared: PreparedRound | None, profile: WireProfile) -> RoundChangeParts: ...
