"""Tests the steps of a validator key rotation."""

from __future__ import annotations

import pytest

from ophion.cli.key_rotation import ENGINES, RotationOptions, RotationView, rotation_steps
from ophion.runtime.options import problems_of

A, B, C, OLD, NEW = (f"0x{digit * 40}" for digit in "abcde")


def _view(
    validators: set[str], pending: dict[str, bool] | None = None, producers: set[str] | None = None
) -> RotationView:
    return RotationView("http://n", frozenset(validators), pending or {}, frozenset(producers or ()))


@pytest.mark.parametrize(
    ("views", "done", "action"),
    [
        ([_view({A, B, OLD})], 1, "0 of 2 votes are cast. Call qbft_proposeValidatorVote(0xeee"),
        ([_view({A, B, OLD}, {NEW: True}), _view({A, B, OLD})], 1, "1 of 2 votes are cast"),
        ([_view({A, B, OLD, NEW}, {NEW: True})], 2, "Start the node with the new key"),
        ([_view({A, B, OLD, NEW}, {NEW: True}, {A, NEW})], 3, "0 of 3 votes are cast"),
        ([_view({A, B, NEW}, {OLD: False}, {A, NEW})], 4, "Call qbft_discardValidatorVote for both addresses on http"),
        ([_view({A, B, OLD}), _view({A, B, C})], 0, "Wait until all nodes"),
    ],
)
def test_the_next_step_is_the_first_that_is_not_done(views: list[RotationView], done: int, action: str) -> None:
    steps = rotation_steps(ENGINES[0], views, OLD, NEW)
    assert all(step.is_done for step in steps[:done])
    assert not steps[done].is_done
    assert steps[done].action.startswith(action)


def test_a_complete_rotation_has_no_open_step() -> None:
    steps = rotation_steps(ENGINES[1], [_view({A, B, NEW}, {}, {NEW})], OLD, NEW)
    assert all(step.is_done for step in steps)


def test_the_addresses_must_differ() -> None:
    assert problems_of(RotationOptions(urls=("http://n",), old=bytes(20), new=bytes(20))) == [
        "--old and --new are the same address."
    ]
