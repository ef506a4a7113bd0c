"""Votes that a validator stores on disk, so that it does not contradict them after a restart.

Neither Besu nor Pantheon 1.2 stores votes, and both can fork after a badly timed restart (consensus.md 6.2, I-07). A
validator must remember two facts:

* *prepared*: the proof that a quorum prepared a block. Every later round change of the height must repeat this proof,
  because another validator may have committed that block;
* *round*: the highest round in which the validator has voted, or which it has requested. In this round it must repeat
  the same vote. In earlier rounds it must not vote, because a proposal may already use its round change.

A restarted validator therefore does not begin at round 0. If it had only requested a round, it repeats the request; if
it had voted, it continues with the next round. After a restart of the whole network the repeated requests form a quorum
without waiting for a timer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from ophion.consensus.bft.messages import Prepare, PreparedRound, ProposedBlock, SignedProposal
from ophion.errors import DecodeError
from ophion.primitives import rlp
from ophion.primitives.types import HASH_LENGTH, Hash32

_VERSION = 1


class VoteDecoders(Protocol):
    """Decodes parts of stored votes. Each protocol implements this interface."""

    def signed_proposal(self, data: bytes) -> SignedProposal: ...
    def prepare(self, data: bytes) -> Prepare: ...
    def candidate(self, block: bytes) -> ProposedBlock: ...


class DurableVotes(Struct, frozen=True):
    """The stored votes of one height."""

    height: int
    round: int = 0
    """Highest round in which this validator has voted, or which it has requested."""
    vote: Hash32 | None = None
    """Digest that this validator proposed, prepared or committed in `round`; None if the validator only requested the
    round.
    """
    prepared: PreparedRound | None = None
    """Proof of the latest block that a quorum prepared at this height."""

    @property
    def resume_round(self) -> int:
        """The round in which the validator continues after a restart."""
        return self.round + 1 if self.vote is not None else self.round

    def encode(self) -> bytes:
        """Encode the votes for the database. `decode` reads the result."""
        prepared: list[rlp.Encodable] = []
        if self.prepared is not None:
            signed = self.prepared.proposal
            prepared = [
                self.prepared.round,
                self.prepared.block.encoded,
                [prepare.raw.data for prepare in self.prepared.prepares],
                signed.encoded if signed is not None else b"",
            ]
        return rlp.encode([_VERSION, self.height, self.round, self.vote or b"", prepared])

    @staticmethod
    def decode(data: bytes, decoders: VoteDecoders) -> DurableVotes:
        """Decode stored votes. Raises `DecodeError` for another version or protocol."""
        items = rlp.decode_list(data)
        if not items or items[0] != rlp.scalar(_VERSION):
            raise DecodeError("not a record of this version", "remembered consensus state")
        if len(items) != 5:
            raise DecodeError(f"{len(items)} items instead of 5", "remembered consensus state")
        _, height, round_number, vote, prepared = items
        if not isinstance(vote, bytes) or len(vote) not in (0, HASH_LENGTH) or not isinstance(prepared, list):
            raise DecodeError("malformed vote or certificate", "remembered consensus state")
        return DurableVotes(
            rlp.decode_int(height),
            rlp.decode_int(round_number),
            vote or None,
            _decode_prepared(prepared, decoders) if prepared else None,
        )


def _decode_prepared(items: list[rlp.Item], decoders: VoteDecoders) -> PreparedRound:
    if len(items) != 4:
        raise DecodeError(f"certificate of {len(items)} items instead of 4", "remembered consensus state")
    round_number, block, prepares, signed = items
    if not isinstance(block, bytes) or not isinstance(prepares, list) or not isinstance(signed, bytes):
        raise DecodeError("malformed certificate", "remembered consensus state")
    return PreparedRound(
        rlp.decode_int(round_number),
        decoders.candidate(block),
        tuple(_each(prepares, decoders.prepare)),
        decoders.signed_proposal(signed) if signed else None,
    )


def _each(items: list[rlp.Item], read: Callable[[bytes], Prepare]) -> list[Prepare]:
    found = []
    for item in items:
        if not isinstance(item, bytes):
            raise DecodeError("a list where a message is expected", "remembered consensus state")
        found.append(read(item))
    return found
