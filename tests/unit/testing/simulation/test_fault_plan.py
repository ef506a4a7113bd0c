"""Tests the faults of a seed."""

from __future__ import annotations

from random import Random

from ophion.consensus.bft.validator_set import tolerated_faults
from ophion.testing.simulation.fault_plan import CALM, LinkQuality, Misconduct, draw_conditions


def test_the_same_seed_gives_the_same_weather() -> None:
    assert draw_conditions(Random(5), 7, 2, 20.0) == draw_conditions(Random(5), 7, 2, 20.0)
    assert draw_conditions(Random(5), 7, 2, 20.0) != draw_conditions(Random(6), 7, 2, 20.0)


def test_liars_and_forgetful_members_together_are_never_more_than_tolerated() -> None:
    for seed in range(300):
        for validators in (1, 3, 4, 7, 10):
            most = tolerated_faults(validators)
            conditions = draw_conditions(Random(seed), validators, seed % (most + 1), 20.0)
            assert len(conditions.faulty) <= most


def test_everything_bad_happens_within_the_storm() -> None:
    for seed in range(100):
        conditions = draw_conditions(Random(seed), 7, 2, 20.0)
        assert all(0 <= outage.start_s <= outage.end_s <= 20.0 for outage in conditions.outages)
        assert all(0 <= partition.start_s <= partition.end_s <= 20.0 for partition in conditions.partitions)


def test_liars_beyond_what_is_tolerated_try_to_fork() -> None:
    for seed in range(20):
        conditions = draw_conditions(Random(seed), 4, 2, 20.0)
        for kinds in conditions.misconduct.values():
            assert {Misconduct.DOUBLE_PROPOSAL, Misconduct.EQUIVOCATION} <= set(kinds)


def test_links_lose_double_and_delay() -> None:
    rng = Random(1)
    assert all(len(CALM.fate(rng)) == 1 for _ in range(100))
    assert all(CALM.min_delay_s <= CALM.fate(rng)[0] <= CALM.max_delay_s for _ in range(100))
    bad = LinkQuality(0.1, 0.2, slow_share=0.5, loss=0.3, duplication=0.3)
    fates = [bad.fate(rng) for _ in range(2000)]
    assert {len(fate) for fate in fates} == {0, 1, 2}
    assert max(max(fate, default=0.0) for fate in fates) > 1.0
