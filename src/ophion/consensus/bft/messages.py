"""What validators say to each other, decoded.

Both protocols share these values; how they look on the wire is the protocol's affair (`ibft2.py`, `qbft.py`). Whoever
makes such a value has recovered the authors: the machine reads `author` and trusts it. `encoded` keeps the signed
bytes as they were received, because certificates repeat them and a signature covers exactly those bytes (consensus.md
0.6).

    Proposal      the proposer of a round offers a block; in later rounds with the round changes that justify it
    Prepare       a validator has checked the block and would accept it
    Commit        a validator has seen a quorum of prepares; carries its seal for the header
    RoundChange   a validator gives up waiting and asks for a later round; carries what it had prepared
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TypeAlias

from ophion.errors import OphionError
from ophion.native.crypto import keccak256
from ophion.primitives.types import Address, Hash32, Signature


class Unjustified(OphionError):
    """A message whose content does not follow from what came before; it is dropped."""


class MessageKind(IntEnum):
    """The four kinds, numbered as IBFT 2.0 numbers them."""

    PROPOSAL = 0
    PREPARE = 1
    COMMIT = 2
    ROUND_CHANGE = 3


@dataclass(frozen=True, slots=True)
class RawMessage:
    """A message as its sub-protocol carries it: code without offset, and message data."""

    code: int
    data: bytes


NOT_ENCODED = RawMessage(0, b"")
"""For messages that never meet a wire."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A block as one round sees it.

    The same block has another `digest` in every round in which it is proposed, and one `hash` throughout
    (consensus.md 2.3): validators agree on the digest, the chain knows the hash.
    """

    height: int
    round: int
    """The round written into its extra data."""
    builder: Address
    """Its coinbase: its first builder, also when another validator proposes it again."""
    digest: Hash32
    hash: Hash32
    encoded: bytes = field(repr=False)
    """RLP of the whole block, with this round and without seals."""


@dataclass(frozen=True, slots=True)
class SignedProposal:
    """The signed part of a proposal, as certificates repeat it."""

    height: int
    round: int
    digest: Hash32
    author: Address
    encoded: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Prepare:
    """One validator would accept this block in this round."""

    height: int
    round: int
    digest: Hash32
    author: Address
    fingerprint: bytes = field(default=b"", repr=False)
    raw: RawMessage = field(default=NOT_ENCODED, repr=False)


@dataclass(frozen=True, slots=True)
class Commit:
    """One validator knows that a quorum would accept it, and seals it."""

    height: int
    round: int
    digest: Hash32
    seal: Signature = field(repr=False)
    author: Address
    fingerprint: bytes = field(default=b"", repr=False)
    raw: RawMessage = field(default=NOT_ENCODED, repr=False)


@dataclass(frozen=True, slots=True)
class PreparedClaim:
    """What a round change says its author had prepared.

    IBFT 2.0 signs the whole certificate, so `proposal` and `prepares` are here. QBFT signs round and digest alone; its
    prepares travel beside the signed part, in the message that carries it.
    """

    round: int
    digest: Hash32
    proposal: SignedProposal | None = None
    prepares: tuple[Prepare, ...] = ()


@dataclass(frozen=True, slots=True)
class SignedRoundChange:
    """The signed part of a round change, as certificates repeat it."""

    height: int
    round: int
    """The round it asks for."""
    claim: PreparedClaim | None
    author: Address
    encoded: bytes = field(default=b"", repr=False)


class _Signed:
    """A message with a signed part, which says what it is about."""

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
    """A validator gives up on the rounds below `round`."""

    signed: SignedRoundChange
    block: Candidate | None
    """The prepared block, in the form of the round in which it was prepared."""
    prepares: tuple[Prepare, ...] = ()
    """What justifies the claim: QBFT only, see `PreparedClaim`."""
    fingerprint: bytes = field(default=b"", repr=False)
    raw: RawMessage = field(default=NOT_ENCODED, repr=False)


@dataclass(frozen=True, slots=True)
class Proposal(_Signed):
    """A block for one round, and why it may be proposed there."""

    signed: SignedProposal
    block: Candidate
    round_changes: tuple[SignedRoundChange, ...] | None
    """None when the message carries no certificate at all, as IBFT 2.0 wants it in round 0."""
    prepares: tuple[Prepare, ...] = ()
    """QBFT: the prepares behind the highest claim among the round changes."""
    known_as: bytes = field(default=b"", repr=False, compare=False)
    """Its fingerprint, where that has been worked out."""
    raw: RawMessage = field(default=NOT_ENCODED, repr=False)

    @property
    def fingerprint(self) -> bytes:
        """H(message data). Computed on demand: own proposals never need it, and a large block takes milliseconds."""
        return self.known_as or keccak256(self.raw.data)


BftMessage: TypeAlias = "Proposal | Prepare | Commit | RoundChange"


@dataclass(frozen=True, slots=True)
class PreparedRound:
    """Proof that a quorum would accept a block in a round: the thing a validator must never forget.

    A validator commits after at least Q - f honest validators hold such a proof; their round changes carry it into
    every later round, which is why no other block can be decided at this height (consensus.md 2.9, rule 3c).
    """

    round: int
    block: Candidate
    """As it was transmitted in that round."""
    prepares: tuple[Prepare, ...]
    proposal: SignedProposal | None
    """IBFT 2.0 repeats the signed proposal in its certificates; QBFT does not need it."""

    @property
    def digest(self) -> Hash32:
        return self.block.digest
