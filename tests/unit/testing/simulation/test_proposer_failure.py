"""Tests the time without blocks after a proposer crashes. tests/simulation has the figures."""

from __future__ import annotations

from ophion.testing.simulation.proposer_failure import recovery_s
from ophion.testing.simulation.seed_runs import SeedOptions


def test_the_others_go_on_and_a_seed_repeats_itself() -> None:
    for protocol in ("ibft2", "qbft"):
        options = SeedOptions(protocol)
        taken = recovery_s(3, options)
        assert 0.0 < taken < 10.0
        assert taken == recovery_s(3, options)


def test_two_validators_do_not_survive_the_loss_of_one() -> None:
    assert recovery_s(1, SeedOptions("ibft2", validators=2)) == float("inf")
