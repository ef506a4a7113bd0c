"""Collects round changes: whether enough validators request a round, and what its proposer must propose.

Only the latest few requests per author are stored, so a misbehaving author cannot fill the memory. An honest author
that requests a later round has left all earlier rounds, so its earlier requests are not needed.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ophion.consensus.bft.messages import Prepare, ProposedBlock, RoundChange, SignedRoundChange
from ophion.primitives.types import Address

_ROUNDS_KEPT = 3


class Certificate(Struct, frozen=True):
    """A quorum of round changes for one round, which justifies the proposal of this round."""

    round_changes: tuple[SignedRoundChange, ...]
    block: ProposedBlock | None
    """The block with the latest prepared round among the round changes. The proposer must propose this block again. If
    None, the proposer may propose any block.
    """
    prepares: tuple[Prepare, ...]
    """The prepares of `block`, if the protocol sends them beside the round change."""


class RoundChanges:
    """Valid round changes of one height."""

    __slots__ = ("_by_author",)

    def __init__(self) -> None:
        self._by_author: dict[Address, dict[int, RoundChange]] = {}

    def add(self, message: RoundChange) -> bool:
        """Store a round change if its author has not requested this round before. Returns whether the message was
        stored.
        """
        rounds = self._by_author.setdefault(message.author, {})
        if message.round in rounds:
            return False
        rounds[message.round] = message
        if len(rounds) > _ROUNDS_KEPT:
            del rounds[min(rounds)]
        return message.round in rounds

    def of(self, round_number: int) -> list[RoundChange]:
        """Return all round changes for exactly this round."""
        return [rounds[round_number] for rounds in self._by_author.values() if round_number in rounds]

    def authors(self, round_number: int) -> frozenset[Address]:
        """Return the authors that requested exactly this round."""
        return frozenset(author for author, rounds in self._by_author.items() if round_number in rounds)

    def reached_by(self, count: int, above: int) -> int | None:
        """Return the highest round above `above` such that at least `count` authors have requested that round or a
        later round.

        With `count` = f + 1, at least one of the authors is honest.
        """
        latest = sorted((max(rounds) for rounds in self._by_author.values() if rounds), reverse=True)
        if len(latest) < count or latest[count - 1] <= above:
            return None
        return latest[count - 1]

    def certificate(self, round_number: int) -> Certificate:
        """Return all round changes for a round, with the block of the latest prepared round. On a tie, the first block
        applies.
        """
        messages = self.of(round_number)
        best = highest_claim(messages)
        return Certificate(
            tuple(message.signed for message in messages),
            best.block if best is not None else None,
            best.prepares if best is not None else (),
        )

    def forget_below(self, round_number: int) -> None:
        """Drop round changes for rounds below `round_number`."""
        for rounds in self._by_author.values():
            for number in [number for number in rounds if number < round_number]:
                del rounds[number]

    def __len__(self) -> int:
        return sum(len(rounds) for rounds in self._by_author.values())


def highest_claim(messages: Iterable[RoundChange]) -> RoundChange | None:
    """Return the round change whose block was prepared in the latest round."""
    best: RoundChange | None = None
    best_round = -1
    for message in messages:
        claim = message.signed.claim
        if claim is not None and claim.round > best_round:
            best, best_round = message, claim.round
    return best
