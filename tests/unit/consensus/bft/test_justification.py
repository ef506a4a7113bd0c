"""Certificates need enough messages of distinct authors."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ophion.consensus.bft.justification import check_authors, check_prepares, check_round_changes, check_target
from ophion.consensus.bft.messages import Prepare, PreparedClaim, SignedRoundChange, Unjustified
from ophion.consensus.bft.validator_set import ValidatorSet

A, B, C = (bytes((index,)) * 20 for index in (1, 2, 3))


def test_enough_different_authors_pass() -> None:
    check_authors((A, B, C), 3, "prepares")
    check_authors((A, B, C), 2, "prepares")


def test_too_few_and_repeated_authors_do_not() -> None:
    with pytest.raises(Unjustified, match="2 prepares where 3 are needed"):
        check_authors((A, B), 3, "prepares")
    with pytest.raises(Unjustified, match="two prepares of one author"):
        check_authors((A, B, A), 2, "prepares")


def test_round_changes_are_of_one_round_and_of_validators() -> None:
    validator_set = ValidatorSet.of(5, (A, B, C), bytes(20))
    good = [SignedRoundChange(5, 2, None, author) for author in (A, B)]
    check_round_changes(good, 2, validator_set)
    foreign_message = SignedRoundChange(5, 2, None, bytes(20))
    for bad in (good[:1], [*good[:1], *good[:1]], [*good, foreign_message], [good[0], replace(good[1], height=6)]):
        with pytest.raises(Unjustified):
            check_round_changes(bad, 2, validator_set)
    with pytest.raises(Unjustified, match="another round"):
        check_round_changes(good, 3, validator_set)


def test_a_round_change_asks_for_a_later_round_than_it_has_prepared_in() -> None:
    check_target(SignedRoundChange(5, 2, PreparedClaim(1, bytes(32)), A))
    for change in (SignedRoundChange(5, 0, None, A), SignedRoundChange(5, 2, PreparedClaim(2, bytes(32)), A)):
        with pytest.raises(Unjustified):
            check_target(change)


def test_prepares_are_for_one_block_in_one_round_and_of_validators() -> None:
    validator_set = ValidatorSet.of(5, (A, B, C), bytes(20))
    good = [Prepare(5, 1, bytes(32), author) for author in (A, B)]
    check_prepares(good, 2, 1, bytes(32), validator_set)
    for change in ({"height": 6}, {"round": 2}, {"digest": b"\1" * 32}, {"author": bytes(20)}, {"author": A}):
        with pytest.raises(Unjustified):
            check_prepares([good[0], replace(good[1], **change)], 2, 1, bytes(32), validator_set)  # type: ignore[arg-type]
    with pytest.raises(Unjustified, match="2 prepares where 3 are needed"):
        check_prepares(good, 3, 1, bytes(32), validator_set)
