"""Decoded BFT messages, shared by both protocols.

`ibft2_messages.py` and `qbft_messages.py` define the encodings. The decoder recovers each `author` from the signature,
so the state machine trusts this field. `encoded` holds the signed bytes as received, because certificates repeat these
bytes and the signature covers them (consensus.md 0.6).

    Proposal      the proposer of a round offers a block; in later rounds with the round changes that justify it
    Prepare       a validator has checked the block and accepts it
    Commit        a validator has received a quorum of prepares; carries its seal for the header
    RoundChange   a validator requests a later round; carries the block it had prepared
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from ophion.errors import OphionError
from ophion.native.crypto import keccak256
from ophion.primitives.types import Address, Hash32, Signature


class Unjustified(OphionError):
    """Raised when earlier messages do not justify a message. The message is then dropped."""


class MessageKind(IntEnum):
    """The four kinds of messages, with their numbers in IBFT 2.0."""

    PROPOSAL = 0
    PREPARE = 1
    COMMIT = 2
    ROUND_CHANGE = 3


@dataclass(frozen=True, slots=True)
class RawMessage:
    """A message on the wire: its code relative to the sub-protocol, and the encoded data."""

    code: int
    data: bytes


NOT_ENCODED = RawMessage(0, b"")
"""Value of `encoded` for messages that are never sent."""


@dataclass(frozen=True, slots=True)
class ProposedBlock:
    """A block as proposed in one round.

    The block has another `digest` in every round in which it is proposed, but always the same `hash` (consensus.md
    2.3). Validators agree on the digest; the chain uses the hash.
    """

    height: int
    round: int
    """The round in the extra data of the block."""
    builder: Address
    """Coinbase of the block, which stays the same when another validator proposes the block again."""
    digest: Hash32
    hash: Hash32
    encoded: bytes = field(repr=False)
    """RLP of the whole block, with `round` in its extra data and without seals."""


@dataclass(frozen=True, slots=True)
class SignedProposal:
    """The signed part of a proposal. Certificates repeat this part."""

    height: int
    round: int
    digest: Hash32
    author: Address
    encoded: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Prepare:
    """A validator accepts this block in this round."""

    height: int
    round: int
    digest: Hash32
    author: Address
    fingerprint: bytes = field(default=b"", repr=False)
    raw: RawMessage = field(default=NOT_ENCODED, repr=False)


@dataclass(frozen=True, slots=True)
class Commit:
    """A validator has received a quorum of prepares and seals the block."""

    height: int
    round: int
    digest: Hash32
    seal: Signature = field(repr=False)
    author: Address
    fingerprint: bytes = field(default=b"", repr=False)
    raw: RawMessage = field(default=NOT_ENCODED, repr=False)


@dataclass(frozen=True, slots=True)
class PreparedClaim:
    """The block that the author of a round change claims to have prepared.

    IBFT 2.0 signs the whole certificate, so the claim includes `proposal` and `prepares`. QBFT signs only round and
    digest; its prepares are in the unsigned part of the message.
    """

    round: int
    digest: Hash32
    proposal: SignedProposal | None = None
    prepares: tuple[Prepare, ...] = ()


@dataclass(frozen=True, slots=True)
class SignedRoundChange:
    """The signed part of a round change. Certificates repeat this part."""

    height: int
    round: int
    """The round that the validator requests."""
    claim: PreparedClaim | None
    author: Address
    encoded: bytes = field(default=b"", repr=False)


class _Signed:
    """A message that contains a signed part."""

    __slots__ = ()
    signed: SignedProposal | SignedRoundChange

    @property
    def height(self) -> int:
        return self.signed.height

    @property
    def round(self) -> int:
        return self.signed.round

    @property
    def author(self) -> Address:
        return self.signed.author


@dataclass(frozen=True, slots=True)
class RoundChange(_Signed):
    """A validator requests `round` and leaves all earlier rounds."""

    signed: SignedRoundChange
    block: ProposedBlock | None
    """The prepared block, with the round in which it was prepared."""
    prepares: tuple[Prepare, ...] = ()
    """Prepares that prove the claimed block. Only QBFT sets this field, see `PreparedClaim`."""
    fingerprint: bytes = field(default=b"", repr=False)
    raw: RawMessage = field(default=NOT_ENCODED, repr=False)


@dataclass(frozen=True, slots=True)
class Proposal(_Signed):
    """A proposal of a block for one round, with its justification."""

    signed: SignedProposal
    block: ProposedBlock
    round_changes: tuple[SignedRoundChange, ...] | None
    """Round changes that justify the proposal. None if the message has no certificate. In round 0, IBFT 2.0 requires a
    message without a certificate.
    """
    prepares: tuple[Prepare, ...] = ()
    """The prepares that prove the block of the latest prepared round. Only QBFT sets this field."""
    known_as: bytes = field(default=b"", repr=False, compare=False)
    """The fingerprint of the message, if it is already computed."""
    raw: RawMessage = field(default=NOT_ENCODED, repr=False)

    @property
    def fingerprint(self) -> bytes:
        """Hash of the message data. Computed at first use, because hashing takes milliseconds and own proposals need no
        fingerprint.
        """
        return self.known_as or keccak256(self.raw.data)


BftMessage: TypeAlias = "Proposal | Prepare | Commit | RoundChange"


@dataclass(frozen=True, slots=True)
class PreparedRound:
    """Proof that a quorum prepared a block in a round. A validator must never lose this proof.

    A block is committed only after at least Q - f honest validators hold its proof. The round changes of these
    validators carry the proof into every later round, so no other block can be decided at this height (consensus.md
    2.9, rule 3c).
    """

    round: int
    block: ProposedBlock
    """The block as proposed in the prepared round."""
    prepares: tuple[Prepare, ...]
    proposal: SignedProposal | None
    """The signed proposal. Certificates of IBFT 2.0 contain it; QBFT does not need it."""

    @property
    def digest(self) -> Hash32:
        return self.block.digest
