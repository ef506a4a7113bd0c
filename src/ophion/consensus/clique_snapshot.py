"""Who may sign a Clique chain: a pure fold over its headers (EIP-225, consensus.md 1.5 and 1.6).

A `Snapshot` is the state after one block; `apply` gives the state after the next. `Snapshots` finds the state after any
block of any branch: from memory, or by walking back to the nearest epoch block, whose header lists the signers, and
folding forward from there.
"""

from __future__ import annotations

from bisect import insort
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from ophion.consensus.engine import HeaderReader, Vote
from ophion.errors import InvalidHeader, UnknownParent
from ophion.primitives.block import HashedHeader
from ophion.primitives.types import Address, Hash32

_KEPT: Final = 1024


@dataclass(frozen=True, slots=True)
class CastVote:
    """A vote that counts: its target is not yet what the voter wants it to be."""

    voter: Address
    target: Address
    authorize: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Signers, standing votes and recent authors after one block."""

    number: int
    signers: tuple[Address, ...]
    """Ascending."""
    votes: tuple[CastVote, ...] = ()
    recents: tuple[tuple[int, Address], ...] = ()
    """(number, author) of the last blocks, oldest first; never more than the recency limit looks at."""

    @property
    def limit(self) -> int:
        """A signer may make one of so many consecutive blocks."""
        return len(self.signers) // 2 + 1

    def in_turn(self, number: int) -> Address:
        """Whose turn the block is."""
        return self.signers[number % len(self.signers)]

    def may_sign(self, signer: Address, number: int) -> bool:
        """Whether `signer` is a signer and has not made one of the last blocks."""
        return signer in self.signers and not self.signed_recently(signer, number)

    def signed_recently(self, signer: Address, number: int) -> bool:
        """Whether `signer` made one of the `limit - 1` blocks before this number."""
        return any(author == signer and seen > number - self.limit for seen, author in self.recents)

    def tally(self, target: Address) -> int:
        """Votes that stand on a target. They all go one way: only votes that would change something are kept."""
        return sum(vote.target == target for vote in self.votes)

    def is_meaningful(self, vote: Vote) -> bool:
        """Whether the vote would change the signers."""
        return vote.authorize == (vote.target not in self.signers)

    def apply(self, number: int, signer: Address, vote: Vote, is_epoch: bool) -> Snapshot:
        """The state after the next block; `InvalidHeader` when its author may not make it."""
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
            # what the standing votes want follows from the target: they would not stand if they changed nothing
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


SignerOf: TypeAlias = Callable[[HashedHeader], Address]
"""Recovers who sealed a header."""

ListedSigners: TypeAlias = Callable[[HashedHeader], tuple[Address, ...]]
"""Reads the signer list of an epoch header."""

VoteOf: TypeAlias = Callable[[HashedHeader], Vote]
"""Reads the vote of a header."""


class Snapshots:
    """Snapshots by block hash. Holds no truth of its own: everything in it can be folded again from headers."""

    def __init__(self, epoch_length: int, signer_of: SignerOf, listed: ListedSigners, vote_of: VoteOf) -> None:
        self._epoch_length = epoch_length
        self._signer_of = signer_of
        self._listed = listed
        self._vote_of = vote_of
        self._known: OrderedDict[Hash32, Snapshot] = OrderedDict()

    def after(self, header: HashedHeader, chain: HeaderReader) -> Snapshot:
        """The state after `header`, whose ancestors must be verified; `UnknownParent` when they are not all there."""
        pending: list[HashedHeader] = []
        cursor = header
        while (snapshot := self._known.get(cursor.hash)) is None:
            if cursor.number % self._epoch_length == 0:
                snapshot = self._from_epoch(cursor, chain)
                break
            pending.append(cursor)
            parent = chain.header(cursor.parent_hash)
            if parent is None:
                raise UnknownParent(cursor.number, cursor.parent_hash, cursor.number - 1)
            cursor = parent
        self._keep(cursor.hash, snapshot)
        for block in reversed(pending):
            snapshot = self.applied(snapshot, block)
            self._keep(block.hash, snapshot)
        return snapshot

    def applied(self, snapshot: Snapshot, header: HashedHeader) -> Snapshot:
        """`snapshot` with one more header."""
        is_epoch = header.number % self._epoch_length == 0
        return snapshot.apply(header.number, self._signer_of(header), self._vote_of(header), is_epoch)

    def remember(self, header: HashedHeader, snapshot: Snapshot) -> None:
        """Keep a state that was folded elsewhere."""
        self._keep(header.hash, snapshot)

    def _from_epoch(self, header: HashedHeader, chain: HeaderReader) -> Snapshot:
        """The state after an epoch block: its list, no votes, and the authors of the last blocks, however old."""
        signers = self._listed(header)
        recents: list[tuple[int, Address]] = []
        cursor: HashedHeader | None = header
        for _ in range(len(signers) // 2 + 1):
            if cursor is None or cursor.number == 0:
                break
            recents.append((cursor.number, self._signer_of(cursor)))
            cursor = chain.header(cursor.parent_hash)
        return Snapshot(header.number, signers, (), tuple(reversed(recents)))

    def _keep(self, block_hash: Hash32, snapshot: Snapshot) -> None:
        self._known[block_hash] = snapshot
        self._known.move_to_end(block_hash)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
