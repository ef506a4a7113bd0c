"""Runs a short set of seeds, and proves that the checker detects faults.

`make seeds` runs the long set.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.height import Height
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.round_change import Certificate, RoundChanges
from ophion.consensus.bft.round_synchronisation import RoundSynchronisation
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.testing.simulation.driver import NetworkSettings
from ophion.testing.simulation.fault_plan import Misconduct
from ophion.testing.simulation.network import SimulatedNetwork
from ophion.testing.simulation.proposer_failure import later_turns_s, recovery_s
from ophion.testing.simulation.seed_runs import RULES, SeedOptions, SeedOutcome, run_many

SHORT = [("ibft2", 4, 120), ("qbft", 4, 120), ("ibft2", 7, 60), ("qbft", 7, 60), ("clique", 4, 60), ("clique", 7, 40)]

REGRESSIONS = [("ibft2", 4, 28), ("ibft2", 4, 788), ("ibft2", 7, 282), ("ibft2", 7, 594)]
"""Seeds that broke a rule in the past: after timeouts had reached their cap, one validator stayed a round ahead of the
others for ever. See `RoundSynchronisation`.
"""


def played(protocol: str, validators: int, seeds: int, byzantine: int | None = None) -> list[SeedOutcome]:
    return list(run_many(0, seeds, SeedOptions(protocol, validators, byzantine)))


def rules_broken(outcomes: list[SeedOutcome]) -> set[str]:
    return {violation.rule for outcome in outcomes for violation in outcome.violations}


@pytest.mark.parametrize(("protocol", "validators", "seeds"), SHORT)
def test_no_seed_breaks_a_rule_or_stalls(protocol: str, validators: int, seeds: int) -> None:
    outcomes = played(protocol, validators, seeds)
    assert [(outcome.seed, str(outcome.violations[0])) for outcome in outcomes if outcome.violations] == []
    assert sum(outcome.blocks for outcome in outcomes) > 3 * seeds


@pytest.mark.parametrize(("protocol", "validators", "seed"), REGRESSIONS)
def test_seeds_that_once_failed_pass(protocol: str, validators: int, seed: int) -> None:
    (outcome,) = run_many(seed, 1, SeedOptions(protocol, validators))
    assert outcome.violations == ()


@pytest.mark.parametrize("validators", [1, 2, 3, 5, 6, 10])
@pytest.mark.parametrize("protocol", ["ibft2", "qbft"])
def test_other_sizes_hold_too(protocol: str, validators: int) -> None:
    assert rules_broken(played(protocol, validators, 12)) == set()


@pytest.mark.parametrize("protocol", ["ibft2", "qbft"])
def test_more_liars_than_tolerated_are_found_out(protocol: str) -> None:
    assert "one block per height" in rules_broken(played(protocol, 4, 60, byzantine=2))
    kinds = (Misconduct.DOUBLE_PROPOSAL, Misconduct.EQUIVOCATION)
    for validators, liars in ((4, 2), (7, 3)):
        forked = 0
        for seed in range(12):
            world = SimulatedNetwork(
                NetworkSettings(RULES[protocol], validators), seed, dict.fromkeys(range(liars), kinds)
            )
            world.start()
            world.run(20.0)
            forked += any(violation.rule == "one block per height" for violation in world.checker.violations)
        assert forked > 0, validators


# --- the checker detects faulty machines --------------------------------------------------------


def test_a_machine_that_forgets_its_votes_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DurableVotes, "resume_round", property(lambda _votes: 0))
    assert rules_broken(played("ibft2", 4, 60)) & {"one vote per round", "rounds only go up"}


def test_a_machine_with_too_small_a_quorum_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    original = ValidatorSet.of

    def small(height: int, validators: tuple[bytes, ...], builder: bytes) -> ValidatorSet:
        found = original(height, validators, builder)
        return replace(found, quorum=found.quorum - 1)

    monkeypatch.setattr(ValidatorSet, "of", staticmethod(small))
    assert "a quorum of valid seals" in rules_broken(played("qbft", 4, 10))


def test_a_machine_that_ignores_what_was_prepared_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(changes: RoundChanges, round_number: int) -> Certificate:
        return Certificate(tuple(message.signed for message in changes.of(round_number)), None, ())

    monkeypatch.setattr(RoundChanges, "certificate", forgetful)
    broken = rules_broken(played("qbft", 4, 60))
    assert {"a locked block is not replaced", "a prepared block is not replaced"} & broken


def test_a_machine_that_believes_every_proposal_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for protocol in (Ibft2, Qbft):
        monkeypatch.setattr(protocol, "check_proposal", lambda *_arguments: None)
    assert rules_broken(played("ibft2", 4, 60, byzantine=1)) - {"height grows after healing"}


def test_a_machine_that_chases_the_others_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RoundSynchronisation, "start", lambda _gathering, _round: None)
    # repeated messages at a reconnection would bring late validators together, so disable them
    monkeypatch.setattr(Height, "on_connected", lambda _height, _peer: None)
    options = SeedOptions("ibft2", 4, passes_over=False)
    outcomes = [outcome for seed in (28, 788) for outcome in run_many(seed, 1, options)]
    assert rules_broken(outcomes) == {"height grows after healing"}


# --- figures ------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", ["ibft2", "qbft"])
def test_storms_break_no_rule_with_blocks_every_200_milliseconds(protocol: str) -> None:
    options = SeedOptions(protocol, 4, timing=RoundTiming(0.2, 1.0, 4.0))
    assert not rules_broken(list(run_many(0, 40, options)))


@pytest.mark.parametrize("validators", [4, 7])
@pytest.mark.parametrize("protocol", ["ibft2", "qbft"])
@pytest.mark.parametrize("timing", [RoundTiming(1.0, 1.5, 6.0), RoundTiming(2.0, 4.0, 60.0)], ids=["short", "usual"])
def test_after_a_proposer_crash_the_next_block_comes_within_two_timeouts(
    protocol: str, validators: int, timing: RoundTiming
) -> None:
    options = SeedOptions(protocol, validators, timing=timing)
    taken = [recovery_s(seed, options) / timing.request_timeout_s for seed in range(100)]
    assert sum(number <= 2.0 for number in taken) >= 99


@pytest.mark.parametrize("validators", [4, 7])
@pytest.mark.parametrize("protocol", ["ibft2", "qbft"])
def test_later_turns_of_a_crashed_proposer_cost_at_most_a_quarter_of_a_timeout(protocol: str, validators: int) -> None:
    timing = RoundTiming(1.0, 2.0, 60.0)
    options = SeedOptions(protocol, validators, timing=timing)
    assert max(extra for seed in range(40) for extra in later_turns_s(seed, options)) <= 0.25 * timing.request_timeout_s
    # without skipping, each offline proposer costs a full round timeout
    without = replace(options, passes_over=False)
    least = timing.request_timeout_s - (timing.period_s if protocol == "ibft2" else 0.0)
    assert min(extra for seed in range(3) for extra in later_turns_s(seed, without)) >= least - 0.2
