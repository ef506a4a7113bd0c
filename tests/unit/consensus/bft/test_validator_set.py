"""Tests quorums and proposer order (consensus.md 2.5 and 2.6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.consensus.bft.validator_set import ValidatorSet, quorum_of, tolerated_faults

A, B, C, D = (bytes((index,)) * 20 for index in (1, 3, 5, 7))


@pytest.mark.parametrize(
    ("count", "quorum", "faults"), [(1, 1, 0), (2, 2, 0), (3, 2, 0), (4, 3, 1), (5, 4, 1), (6, 4, 1), (7, 5, 2)]
)
def test_quorum_and_faults_of_small_committees(count: int, quorum: int, faults: int) -> None:
    assert quorum_of(count) == quorum
    assert tolerated_faults(count) == faults


@given(st.integers(1, 10_000))
def test_two_quorums_always_share_an_honest_validator_and_the_honest_ones_are_a_quorum(count: int) -> None:
    quorum, faults = quorum_of(count), tolerated_faults(count)
    assert 2 * quorum - count >= faults + 1
    assert count - faults >= quorum


def test_turns_go_round_from_the_builder_of_the_parent() -> None:
    validator_set = ValidatorSet.of(5, (D, B, A, C), B)
    assert validator_set.validators == (A, B, C, D)
    assert [validator_set.proposer(number) for number in range(5)] == [C, D, A, B, C]


def test_the_first_block_is_proposed_by_the_first_validator() -> None:
    assert ValidatorSet.of(1, (B, A), bytes(20)).proposer(0) == A


def test_i_20_after_a_removed_builder_comes_the_first_validator_above_it() -> None:
    assert ValidatorSet.of(9, (A, C, D), B).proposer(0) == C
    assert ValidatorSet.of(9, (A, B, C), D).proposer(0) == A


def test_a_validator_listed_twice_counts_once() -> None:
    assert len(ValidatorSet.of(1, (A, A, B), A)) == 2
