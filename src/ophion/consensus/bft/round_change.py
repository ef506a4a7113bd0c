"""Collecting round changes: when enough validators want a round, and what its proposer must then propose.

Kept per author are the latest few rounds asked for. An honest author that asks for a later round has left the earlier
ones, so nothing of use is lost, and a misbehaving author cannot fill the memory of others.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ophion.consensus.bft.messages import Candidate, Prepare, RoundChange, SignedRoundChange
from ophion.primitives.types import Address

_ROUNDS_KEPT = 3


class Certificate(Struct, frozen=True):
    """A quorum of round changes for one round, ready to justify its proposal."""

    round_changes: tuple[SignedRoundChange, ...]
    block: Candidate | None
    """The block prepared in the latest round among them, which must be proposed again; None when any block may be."""
    prepares: tuple[Prepare, ...]
    """The prepares behind that block, where the protocol carries them beside the round change."""


class RoundChanges:
    """Valid round changes of one height."""

    __slots__ = ("_by_author",)

    def __init__(self) -> None:
        self._by_author: dict[Address, dict[int, RoundChange]] = {}

    def add(self, message: RoundChange) -> bool:
        """Keep the first one per author and round; whether it was kept."""
        rounds = self._by_author.setdefault(message.author, {})
        if message.round in rounds:
            return False
        rounds[message.round] = message
        if len(rounds) > _ROUNDS_KEPT:
            del rounds[min(rounds)]
        return message.round in rounds

    def of(self, round_number: int) -> list[RoundChange]:
        """Everyone's request for exactly that round."""
        return [rounds[round_number] for rounds in self._by_author.values() if round_number in rounds]

    def authors(self, round_number: int) -> frozenset[Address]:
        """Who asked for exactly that round."""
        return frozenset(author for author, rounds in self._by_author.items() if round_number in rounds)

    def reached_by(self, count: int, above: int) -> int | None:
        """The highest round that at least `count` authors have asked for or passed, if it lies above `above`.

        With `count` = f + 1 at least one honest validator is there, so following is never the work of liars alone.
        """
        latest = sorted((max(rounds) for rounds in self._by_author.values() if rounds), reverse=True)
        if len(latest) < count or latest[count - 1] <= above:
            return None
        return latest[count - 1]

    def certificate(self, round_number: int) -> Certificate:
        """All round changes for a round, with the block of the highest claim; the first one wins ties."""
        messages = self.of(round_number)
        best = highest_claim(messages)
        return Certificate(
            tuple(message.signed for message in messages),
            best.block if best is not None else None,
            best.prepares if best is not None else (),
        )

    def forget_below(self, round_number: int) -> None:
        """Drop requests for rounds that have passed."""
        for rounds in self._by_author.values():
            for number in [number for number in rounds if number < round_number]:
                del rounds[number]

    def __len__(self) -> int:
        return sum(len(rounds) for rounds in self._by_author.values())


def highest_claim(messages: Iterable[RoundChange]) -> RoundChange | None:
    """The round change whose block was prepared latest."""
    best: RoundChange | None = None
    best_round = -1
    for message in messages:
        claim = message.signed.claim
        if claim is not None and claim.round > best_round:
            best, best_round = message, claim.round
    return best
