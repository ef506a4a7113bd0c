"""`VoteRecord`: the votes of one validator, in a store that all nodes with the validator's key share.

Each node replaces the record by compare-and-swap before it sends a message. `replacement` decides which messages are
allowed. All nodes together then behave as one validator:

* The validator never returns to an earlier height or round.
* In one round the validator votes for one digest. A vote keeps the latest proof of preparation in the record.
* The validator requests a round once, with the latest proof of preparation that any of its nodes has used in a commit.
  A node that lacks the proof must not request a round, because its round change would hide a block that may be
  committed.

The record has no block and no signatures, so its size is constant. Each node keeps its own proofs in its database.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.errors import DecodeError
from ophion.primitives.types import HASH_LENGTH, Hash32

NOT_PREPARED: Final = -1


class VoteRecord(Struct, frozen=True):
    """The latest vote or round change of a validator, and the latest block that it has seen prepared at this height."""

    height: int
    round: int = 0
    vote: Hash32 | None = None
    """Digest that the validator proposed, prepared or committed in `round`; None if the validator only requested the
    round.
    """
    prepared_round: int = NOT_PREPARED
    prepared: Hash32 | None = None
    """Digest of the block that was prepared in `prepared_round`."""

    @staticmethod
    def of(votes: DurableVotes, is_round_change: bool = False) -> VoteRecord:
        """Return the record of a node's votes. For a round change, the field `vote` is None."""
        proof, vote = votes.prepared, None if is_round_change else votes.vote
        if proof is None:
            return VoteRecord(votes.height, votes.round, vote)
        return VoteRecord(votes.height, votes.round, vote, proof.round, proof.block.digest)

    def encode(self) -> bytes:
        """Encode the record as JSON, which operators can read. Equal records have equal encodings."""
        return msgspec.json.encode(
            _Form(
                self.height,
                self.round,
                None if self.vote is None else f"0x{self.vote.hex()}",
                self.prepared_round,
                None if self.prepared is None else f"0x{self.prepared.hex()}",
            )
        )

    @staticmethod
    def decode(data: bytes) -> VoteRecord:
        """Decode a vote record from JSON. Raises `DecodeError` for invalid data."""
        try:
            form = msgspec.json.decode(data, type=_Form)
            return VoteRecord(
                form.height, form.round, _digest(form.vote), form.prepared_round, _digest(form.prepared_digest)
            )
        except (msgspec.DecodeError, ValueError) as error:
            raise DecodeError(str(error), "shared vote record") from error

    def __str__(self) -> str:
        vote = "none" if self.vote is None else f"0x{self.vote.hex()}"
        return f"height={self.height} round={self.round} vote={vote} prepared_round={self.prepared_round}"


class _Form(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The fields of a vote record as written in JSON."""

    height: int
    round: int
    vote: str | None
    prepared_round: int
    prepared_digest: str | None


def replacement(stored: VoteRecord | None, wanted: VoteRecord) -> VoteRecord | None:
    """Return the record that replaces `stored`, or None if the message of `wanted` must not be sent.

    The result equals `stored` if a node with this key has already stored the same vote or round change.
    """
    if stored is None or wanted.height > stored.height:
        return wanted
    if wanted.height < stored.height or wanted.round < stored.round:
        return None
    if wanted.vote is None:
        return _round_change(stored, wanted)
    if wanted.round == stored.round and stored.vote not in (None, wanted.vote):
        return None
    if _conflicts(stored, wanted):
        return None
    if wanted.prepared_round >= stored.prepared_round:
        return wanted
    return replace(wanted, prepared_round=stored.prepared_round, prepared=stored.prepared)


def is_successor(earlier: VoteRecord, later: VoteRecord) -> bool:
    """Whether `later` equals `earlier`, or any number of replacements can lead from `earlier` to it.

    If not, the store has lost votes: a record never goes back, and a vote of a round never changes.
    """
    if later.height != earlier.height:
        return later.height > earlier.height
    if later.round < earlier.round or later.prepared_round < earlier.prepared_round or _conflicts(earlier, later):
        return False
    return later.round > earlier.round or earlier.vote in (None, later.vote)


def _round_change(stored: VoteRecord, wanted: VoteRecord) -> VoteRecord | None:
    if wanted.round == stored.round:
        return wanted if wanted == stored else None
    return None if wanted.prepared_round < stored.prepared_round or _conflicts(stored, wanted) else wanted


def _conflicts(stored: VoteRecord, wanted: VoteRecord) -> bool:
    """Whether two records claim different prepared blocks for one round. An honest quorum never does that."""
    return wanted.prepared_round == stored.prepared_round and wanted.prepared != stored.prepared


def _digest(text: str | None) -> Hash32 | None:
    if text is None:
        return None
    digest = bytes.fromhex(text.removeprefix("0x"))
    if len(digest) != HASH_LENGTH:
        raise ValueError(f"digest of {len(digest)} bytes instead of {HASH_LENGTH}")
    return digest
