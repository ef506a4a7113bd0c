"""Votes on validators or signers: proposals of the operator, and the tally that IBFT 2.0 and QBFT read from headers.

Clique counts only votes with an effect (consensus.md 1.6), so Clique has its own tally. All engines share the
operator's proposals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct, field

from ophion.consensus.engine import Vote
from ophion.errors import DecodeError
from ophion.primitives import rlp
from ophion.primitives.types import ADDRESS_LENGTH, Address

_VERSION: Final = 1
_PLACE: Final = "tally of votes"


class LocalProposals:
    """Proposals of this node's operator, in effect until discarded.

    Proposals are in memory and lost on restart. An operator may propose any address at any time. The block builder
    chooses a proposal that has an effect (consensus.md 4.1).
    """

    __slots__ = ("_last", "_wanted")

    def __init__(self) -> None:
        self._wanted: dict[Address, bool] = {}
        self._last: Address = b""

    def propose(self, target: Address, adds: bool) -> None:
        """Vote for or against an address from now on. Replaces an earlier proposal about the same address."""
        self._wanted[target] = adds

    def discard(self, target: Address) -> None:
        """Stop voting on an address. Does nothing if there is no proposal."""
        self._wanted.pop(target, None)

    def pending(self) -> dict[Address, bool]:
        """Return the operator's proposals in order of creation: True to add the address, False to remove it."""
        return dict(self._wanted)

    def next_vote(self, is_useful: Callable[[Vote], bool]) -> Vote | None:
        """Return the vote for the next own block. Rotates by address through the proposals that have an effect."""
        useful = [vote for target, adds in sorted(self._wanted.items()) if is_useful(vote := Vote(target, adds))]
        if not useful:
            return None
        chosen = next((vote for vote in useful if vote.target > self._last), useful[0])
        self._last = chosen.target
        return chosen


class Tally(Struct, frozen=True):
    """Validators and pending votes after a block (consensus.md 2.12). Applying a vote returns a new tally."""

    validators: tuple[Address, ...]
    """Validators in ascending order."""
    adds: Mapping[Address, frozenset[Address]] = field(default_factory=dict)
    """Maps each target to the validators that voted to add it."""
    drops: Mapping[Address, frozenset[Address]] = field(default_factory=dict)
    """Maps each target to the validators that voted to drop it."""

    @staticmethod
    def of(validators: Iterable[Address]) -> Tally:
        """Return a tally without votes: the state after an epoch block."""
        return Tally(tuple(sorted(set(validators))))

    def apply(self, voter: Address, vote: Vote) -> Tally:
        """Return the tally after a block by `voter` with this vote.

        Votes without effect are counted too, and only the target of this vote is evaluated. Besu follows the same two
        rules, and the result is part of the next header.
        """
        target = vote.target
        adds = _with_voter(self.adds, target, voter, vote.authorize)
        drops = _with_voter(self.drops, target, voter, not vote.authorize)
        majority = len(self.validators) // 2 + 1
        validators = self.validators
        if len(adds.get(target, ())) >= majority:
            validators = tuple(sorted({*validators, target}))
        elif len(drops.get(target, ())) >= majority:
            validators = tuple(member for member in validators if member != target)
            adds = _without_voter(adds, target)
            drops = _without_voter(drops, target)
        else:
            return Tally(validators, adds, drops)
        adds.pop(target, None)
        drops.pop(target, None)
        return Tally(validators, adds, drops)

    def standing(self, voter: Address, target: Address) -> bool | None:
        """Return the current vote of `voter` on `target`: True to add, False to drop, None if there is no vote."""
        if voter in self.adds.get(target, ()):
            return True
        if voter in self.drops.get(target, ()):
            return False
        return None

    def is_useful(self, voter: Address, vote: Vote) -> bool:
        """Whether a vote has an effect: it is new and asks for a change of the validator set, or it revokes an opposite
        vote.
        """
        standing = self.standing(voter, vote.target)
        if standing is not None:
            return standing != vote.authorize
        return (vote.target in self.validators) != vote.authorize

    def encode(self) -> bytes:
        """Encode the tally for the database. `decode` reads the result."""

        def listed(votes: Mapping[Address, frozenset[Address]]) -> list[rlp.Encodable]:
            return [(target, sorted(voters)) for target, voters in sorted(votes.items())]

        return rlp.encode([_VERSION, self.validators, listed(self.adds), listed(self.drops)])

    @staticmethod
    def decode(data: bytes) -> Tally:
        """Decode a tally. Raises `DecodeError` for data of another version."""
        items = rlp.decode_list(data)
        if len(items) != 4 or items[0] != rlp.scalar(_VERSION):
            raise DecodeError("not a record of this version", _PLACE)
        _, validators, adds, drops = items
        return Tally(_addresses(validators), _votes(adds), _votes(drops))


def _addresses(item: rlp.Item) -> tuple[Address, ...]:
    found = tuple(entry for entry in item if isinstance(entry, bytes) and len(entry) == ADDRESS_LENGTH)
    if not isinstance(item, list) or len(found) != len(item):
        raise DecodeError("not a list of addresses", _PLACE)
    return found


def _votes(item: rlp.Item) -> dict[Address, frozenset[Address]]:
    found = {}
    if not isinstance(item, list):
        raise DecodeError("not a list of votes", _PLACE)
    for entry in item:
        if not isinstance(entry, list) or len(entry) != 2:
            raise DecodeError("votes that are not a target and its voters", _PLACE)
        (target,) = _addresses(entry[:1])
        found[target] = frozenset(_addresses(entry[1]))
    return found


def _with_voter(
    votes: Mapping[Address, frozenset[Address]], target: Address, voter: Address, is_in: bool
) -> dict[Address, frozenset[Address]]:
    """Return the votes by target, with `voter` added to the voters on `target` or removed."""
    changed = dict(votes)
    before = changed.pop(target, frozenset())
    voters = before | {voter} if is_in else before - {voter}
    if voters:
        changed[target] = voters
    return changed


def _without_voter(votes: Mapping[Address, frozenset[Address]], voter: Address) -> dict[Address, frozenset[Address]]:
    """Return a copy of the votes by target, without the votes that the removed validator `voter` has cast."""
    return {target: others for target, voters in votes.items() if (others := voters - {voter})}
