"""Tests seeds of Clique networks."""

from __future__ import annotations

from ophion.testing.simulation.clique_runs import run_clique_seed, spare_signers


def test_more_than_half_must_be_live() -> None:
    assert [spare_signers(count) for count in range(1, 8)] == [0, 0, 1, 1, 2, 2, 3]


def test_storms_end_in_one_growing_chain() -> None:
    for seed in range(10):
        outcome = run_clique_seed(seed, 5, None, 15.0)
        assert outcome.violations == ()
        assert outcome.blocks > 10
