"""The signers of a Clique chain: computed header by header (EIP-225, consensus.md 1.5 and 1.6).

A `Snapshot` is the state after one block, and `apply` returns the state after the next block. An epoch block lists the
signers, so the computation restarts at epoch blocks.
"""

from __future__ import annotations

from bisect import insort
from typing import Final

from msgspec import Struct

from ophion.consensus.engine import Vote
from ophion.errors import DecodeError, InvalidHeader
from ophion.primitives import rlp
from ophion.primitives.types import ADDRESS_LENGTH, Address

_VERSION: Final = 1
_PLACE: Final = "snapshot of signers"


class CastVote(Struct, frozen=True):
    """A vote that adds an address to the signers, or removes it."""

    voter: Address
    target: Address
    authorize: bool


class Snapshot(Struct, frozen=True):
    """Signers, pending votes and recent authors after one block."""

    number: int
    signers: tuple[Address, ...]
    """Signers in ascending order of their addresses."""
    votes: tuple[CastVote, ...] = ()
    recents: tuple[tuple[int, Address], ...] = ()
    """(number, author) of the last blocks within the recency limit, oldest first."""

    @property
    def limit(self) -> int:
        """Number of consecutive blocks of which a signer may produce at most one."""
        return len(self.signers) // 2 + 1

    def in_turn(self, number: int) -> Address:
        """Return the in-turn signer of a block."""
        return self.signers[number % len(self.signers)]

    def may_sign(self, signer: Address, number: int) -> bool:
        """Whether `signer` is in the list of signers and has not produced a block within the recency limit."""
        return signer in self.signers and not self.signed_recently(signer, number)

    def signed_recently(self, signer: Address, number: int) -> bool:
        """Whether `signer` produced one of the `limit - 1` blocks before this number."""
        return any(author == signer and seen > number - self.limit for seen, author in self.recents)

    def tally(self, target: Address) -> int:
        """Count the stored votes on a target. All stored votes on a target have the same direction, because only votes
        with an effect are stored.
        """
        return sum(vote.target == target for vote in self.votes)

    def is_meaningful(self, vote: Vote) -> bool:
        """Whether the vote would change the signers."""
        return vote.authorize == (vote.target not in self.signers)

    def apply(self, number: int, signer: Address, vote: Vote, is_epoch: bool) -> Snapshot:
        """Return the state after the next block. Raises `InvalidHeader` if `signer` may not produce the block."""
        if signer not in self.signers:
            raise InvalidHeader("unauthorized signer", signer, "one of the signers")
        if self.signed_recently(signer, number):
            raise InvalidHeader("recently signed", signer, f"a signer of none of the last {self.limit - 1} blocks")
        votes = [] if is_epoch else [v for v in self.votes if (v.voter, v.target) != (signer, vote.target)]
        if self.is_meaningful(vote) and not is_epoch:
            votes.append(CastVote(signer, vote.target, vote.authorize))
        signers = list(self.signers)
        standing = sum(v.target == vote.target for v in votes)
        if standing > len(signers) // 2:
            # all pending votes for one target have the same direction, which depends on whether the target is a signer
            if vote.target not in signers:
                insort(signers, vote.target)
            else:
                signers.remove(vote.target)
                votes = [v for v in votes if v.voter != vote.target]
            votes = [v for v in votes if v.target != vote.target]
        limit = len(signers) // 2 + 1
        recents = [entry for entry in self.recents if entry[0] > number - limit]
        recents.append((number, signer))
        return Snapshot(number, tuple(signers), tuple(votes), tuple(recents))

    def encode(self) -> bytes:
        """Encode the snapshot for the database. `decode` reads the result."""
        votes: list[rlp.Encodable] = [(vote.voter, vote.target, int(vote.authorize)) for vote in self.votes]
        return rlp.encode([_VERSION, self.number, self.signers, votes, self.recents])

    @staticmethod
    def decode(data: bytes) -> Snapshot:
        """Decode a snapshot. Raises `DecodeError` for data of another version."""
        items = rlp.decode_list(data)
        if len(items) != 5 or items[0] != rlp.scalar(_VERSION):
            raise DecodeError("not a record of this version", _PLACE)
        _, number, signers, votes, recents = items
        return Snapshot(
            rlp.decode_int(number),
            tuple(_address(signer) for signer in _listed(signers)),
            tuple(
                CastVote(_address(voter), _address(target), bool(rlp.decode_int(authorize)))
                for voter, target, authorize in (_of(vote, 3) for vote in _listed(votes))
            ),
            tuple(
                (rlp.decode_int(seen), _address(author))
                for seen, author in (_of(entry, 2) for entry in _listed(recents))
            ),
        )


def _listed(item: rlp.Item) -> list[rlp.Item]:
    if not isinstance(item, list):
        raise DecodeError("bytes where a list is expected", _PLACE)
    return item


def _of(item: rlp.Item, count: int) -> list[rlp.Item]:
    items = _listed(item)
    if len(items) != count:
        raise DecodeError(f"{len(items)} items instead of {count}", _PLACE)
    return items


def _address(item: rlp.Item) -> Address:
    if not isinstance(item, bytes) or len(item) != ADDRESS_LENGTH:
        raise DecodeError("not an address", _PLACE)
    return item
