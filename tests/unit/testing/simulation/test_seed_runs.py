"""Tests seeds and their results. tests/simulation has the sets of seeds."""

from __future__ import annotations

import pytest

from ophion.consensus.bft.round_timing import RoundTiming
from ophion.testing.simulation.invariants import Violation
from ophion.testing.simulation.seed_runs import (
    PROTOCOLS,
    SeedOptions,
    SeedOutcome,
    SeedSummary,
    conditions_of,
    run_many,
    run_seed,
)
from ophion.testing.simulation.trace import Trace


def test_a_seed_gives_the_same_outcome_every_time_traced_or_not() -> None:
    for protocol in PROTOCOLS:
        options = SeedOptions(protocol)
        first = run_seed(5, options)
        assert first == run_seed(5, options, Trace(4)) == next(iter(run_many(5, 1, options)))
        assert first.blocks > 0
        assert first.violations == ()


def test_outcomes_come_in_order_from_several_processes() -> None:
    options = SeedOptions("qbft", storm_s=5.0)
    together = list(run_many(0, 20, options, processes=2))
    assert [outcome.seed for outcome in together] == list(range(20))
    assert together == list(run_many(0, 20, options))


def test_the_number_of_liars_can_be_given_or_drawn() -> None:
    assert len(conditions_of(1, SeedOptions(validators=7, byzantine=2)).misconduct) == 2
    drawn = {len(conditions_of(seed, SeedOptions(validators=7)).misconduct) for seed in range(40)}
    assert drawn == {0, 1, 2}


def test_a_summary_adds_up() -> None:
    summary = SeedSummary()
    summary.add(SeedOutcome(1, 10, 100, (), 3, 2.5))
    summary.add(SeedOutcome(2, 5, 50, (Violation(1.0, "rule", "detail"),), 1, float("inf")))
    assert (summary.seeds, summary.blocks, summary.steps) == (2, 15, 150)
    assert [outcome.seed for outcome in summary.failures] == [2]
    assert (summary.slowest_healing_s, summary.highest_round) == (2.5, 3)


def test_the_time_allowed_after_healing_grows_with_cap_and_faults() -> None:
    assert SeedOptions(validators=4).growth_limit_s == 36.0
    assert SeedOptions(validators=7).growth_limit_s == 42.0


@pytest.mark.parametrize("validators", [4, 7, 13])
def test_without_faults_each_message_goes_once_to_each_validator(validators: int) -> None:
    """A block takes one proposal, n prepares and n commits, each for n - 1 validators."""
    timing = RoundTiming(5.0, 10.0, 20.0)
    outcome = run_seed(0, SeedOptions("qbft", validators, byzantine=0, storm_s=0.0, timing=timing))
    assert outcome.messages_per_block == (validators - 1) * (1 + 2 * validators)
    assert outcome.highest_round == 0
