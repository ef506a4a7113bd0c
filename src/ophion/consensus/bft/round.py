"""One round of one height: the proposal and its prepares and commits.

Votes may arrive before the proposal. Such votes are stored, one per author and kind, and checked when the proposal is
accepted. Only the first vote of an author counts (consensus.md 2.9). Whether a quorum has prepared or committed is
computed from the stored votes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from ophion.consensus.bft.messages import Commit, Prepare, Proposal
from ophion.primitives.types import Address, Hash32, Signature

SealAuthor: TypeAlias = Callable[[Hash32, Signature], "Address | None"]
"""Recovers the author of a seal. Returns None for an invalid signature."""

NOT_STARTED: Final = -1
"""Round number of a QBFT height whose block is not due yet. With this number, votes of round 0 count as early
(consensus.md 3.5).
"""
MAX_ROUND: Final = 2**31 - 1
"""Maximum round number, because other clients use signed 32-bit numbers."""
_FUTURE_ROUNDS_KEPT: Final = 3
"""Maximum number of later rounds for which votes of one author are stored. An honest author votes only in its latest
round.
"""


class Round:
    """State of the current round of a height."""

    __slots__ = (
        "_seal_author",
        "commits",
        "has_committed",
        "is_decided",
        "number",
        "prepares",
        "proposal",
        "seal_hash",
    )

    def __init__(self, number: int, seal_author: SealAuthor) -> None:
        self.number = number
        self.proposal: Proposal | None = None
        self.seal_hash: Hash32 = b""
        """The hash that the commit seals of this round sign."""
        self.prepares: dict[Address, Prepare] = {}
        self.commits: dict[Address, Commit] = {}
        self.has_committed = False
        """Whether this validator has sent its commit."""
        self.is_decided = False
        """Whether the state machine has ordered the import of the block."""
        self._seal_author = seal_author

    def accept(self, proposal: Proposal, seal_hash: Hash32) -> None:
        """Accept the proposal of this round, and drop early votes for other blocks."""
        self.proposal = proposal
        self.seal_hash = seal_hash
        digest = proposal.block.digest
        self.prepares = {author: vote for author, vote in self.prepares.items() if vote.digest == digest}
        self.commits = {author: vote for author, vote in self.commits.items() if self._is_commit_valid(vote, proposal)}

    def add_prepare(self, vote: Prepare) -> bool:
        """Add a prepare. Returns False for a second prepare of its author, or if it does not fit the proposal."""
        if vote.author in self.prepares:
            return False
        if self.proposal is not None and vote.digest != self.proposal.block.digest:
            return False
        self.prepares[vote.author] = vote
        return True

    def add_commit(self, vote: Commit) -> bool:
        """Add a commit. Returns False for a second commit of its author, or if it does not fit the proposal."""
        if vote.author in self.commits:
            return False
        if self.proposal is not None and not self._is_commit_valid(vote, self.proposal):
            return False
        self.commits[vote.author] = vote
        return True

    def _is_commit_valid(self, vote: Commit, proposal: Proposal) -> bool:
        return vote.digest == proposal.block.digest and self._seal_author(self.seal_hash, vote.seal) == vote.author


class EarlyVotes:
    """Unchecked prepares and commits of later rounds. Their number is bounded per author."""

    __slots__ = ("_by_author",)

    def __init__(self) -> None:
        self._by_author: dict[Address, dict[int, list[Prepare | Commit]]] = {}

    def add(self, vote: Prepare | Commit) -> None:
        """Store a vote. Keeps one vote per author, kind and round, for the latest rounds of the author."""
        rounds = self._by_author.setdefault(vote.author, {})
        kept = rounds.setdefault(vote.round, [])
        if any(type(other) is type(vote) for other in kept):
            return
        kept.append(vote)
        if len(rounds) > _FUTURE_ROUNDS_KEPT:
            del rounds[min(rounds)]

    def start(self, round_number: int) -> list[Prepare | Commit]:
        """Return the votes of a round that begins, and drop the votes of earlier rounds."""
        taken: list[Prepare | Commit] = []
        for rounds in self._by_author.values():
            taken += rounds.get(round_number, ())
            for number in [number for number in rounds if number <= round_number]:
                del rounds[number]
        return taken

    def __len__(self) -> int:
        return sum(len(kept) for rounds in self._by_author.values() for kept in rounds.values())
