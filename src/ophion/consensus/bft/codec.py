"""Messages off the wire, as far as both dialects read them alike: prepares, commits, and what certificates repeat."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Final

from ophion.consensus.bft.extra_data import BftExtraData, ExtraForm
from ophion.consensus.bft.messages import (
    BftMessage,
    Candidate,
    MessageKind,
    Prepare,
    Proposal,
    RawMessage,
    RoundChange,
)
from ophion.consensus.bft.wire import MOST_SIGNATURES, SignedParts, WireStyle, candidate_of, check_body
from ophion.native.crypto import keccak256

_NEWCOMERS: Final = 10
"""A message may be about a height so many blocks ahead, each of which may have added a validator."""


def signatures_expected(validators: int) -> int:
    """The most signatures an honest message carries in a network of this size.

    That is an IBFT 2.0 proposal of a later round: a round change of every validator, each with a proposal and a prepare
    of everybody. Whoever sends more wants others to spend their time on it.
    """
    count = validators + _NEWCOMERS
    return min(MOST_SIGNATURES, 1 + count * (count + 2))


class MessageCodec(ABC):
    """The reading half of a dialect."""

    style: ClassVar[WireStyle]

    def decode(self, raw: RawMessage, most_signatures: int = MOST_SIGNATURES) -> BftMessage:
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

    def prepared_block(self, block: bytes) -> Candidate:
        """The block that a round change carries; `DecodeError` when its body is not its own."""
        found = candidate_of(self, block)
        check_body(block)
        return found

    def signed_parts(self) -> SignedParts:
        """Reader and writer of prepares and commits."""
        return SignedParts(self.style)

    @abstractmethod
    def encode_extra(self, extra: BftExtraData, form: ExtraForm) -> bytes: ...

    @abstractmethod
    def decode_extra(self, data: bytes) -> BftExtraData:
        """`DecodeError` for anything else than the full form."""

    @abstractmethod
    def _read_proposal(self, raw: RawMessage, parts: SignedParts, fingerprint: bytes) -> Proposal: ...

    @abstractmethod
    def _read_round_change(self, raw: RawMessage, parts: SignedParts, fingerprint: bytes) -> RoundChange: ...
