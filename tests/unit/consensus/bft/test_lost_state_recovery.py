"""A validator without durable votes skips some heights."""

from __future__ import annotations

from ophion.consensus.bft.events import Head
from ophion.consensus.bft.lost_state_recovery import LostStateRecovery
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import ZERO_ADDRESS
from ophion.testing.simulation.fake_crypto import stand_in_address

TIMING = RoundTiming(1.0, 2.0, 60.0)
CAME_BACK = 1_000.0


def validator_set(count: int = 4, height: int = 8) -> ValidatorSet:
    return ValidatorSet.of(height, [stand_in_address(index) for index in range(count)], ZERO_ADDRESS)


def head(number: int = 7, timestamp: int = 990) -> Head:
    return Head(number, bytes(32), timestamp, ZERO_ADDRESS)


def test_it_is_over_with_a_block_made_since_it_came_back_clocks_considered() -> None:
    waiting = LostStateRecovery()
    assert not waiting.enter(validator_set(), head(timestamp=999), CAME_BACK)
    assert not waiting.enter(validator_set(height=9), head(8, 1_002), CAME_BACK + 10)
    assert waiting.enter(validator_set(height=10), head(9, 1_003), CAME_BACK + 11)


def test_genesis_and_a_validator_alone_need_not_wait() -> None:
    waiting = LostStateRecovery()
    waiting.enter(validator_set(height=1), head(0, 0), CAME_BACK)
    assert not waiting.holds(validator_set(height=1), head(0, 0))
    assert not waiting.holds(validator_set(1), head())
    assert waiting.holds(validator_set(2), head())


def test_it_joins_a_stuck_quorum_in_a_round_that_no_validator_has_reached() -> None:
    waiting = LostStateRecovery()
    waiting.enter(validator_set(), head(), CAME_BACK)
    waiting.message_received(stand_in_address(0), 8, 2)
    assert waiting.joins(validator_set(), TIMING, CAME_BACK + 10) is None
    waiting.message_received(stand_in_address(1), 7, 9)
    assert waiting.joins(validator_set(), TIMING, CAME_BACK + 10) is None, "that was another height"
    waiting.message_received(stand_in_address(1), 8, 1)
    assert waiting.joins(validator_set(), TIMING, CAME_BACK + 3) is None
    durable_votes = waiting.joins(validator_set(), TIMING, CAME_BACK + 4)
    assert durable_votes is not None
    assert (durable_votes.height, durable_votes.resume_round) == (8, 3)
    waiting.message_received(stand_in_address(2), 8, 1)
    assert waiting.joins(validator_set(), TIMING, CAME_BACK + 31) is None, "three of four can do without it"
    assert waiting.joins(validator_set(), TIMING, CAME_BACK + 32) is not None, "but for a liar among them"


def test_three_validators_tolerate_no_fault_so_one_of_them_is_not_enough_company() -> None:
    waiting = LostStateRecovery()
    waiting.enter(validator_set(3), head(), CAME_BACK)
    waiting.message_received(stand_in_address(0), 8, 0)
    assert waiting.joins(validator_set(3), TIMING, CAME_BACK + 10) is None
    waiting.enter(validator_set(2), head(), CAME_BACK)
    waiting.message_received(stand_in_address(0), 8, 0)
    assert waiting.joins(validator_set(2), TIMING, CAME_BACK + 10) is not None


def test_f_liars_do_not_lure_it_into_rounds_far_away() -> None:
    """Regression: a Byzantine validator requested round 2**31 - 1, and a restarted validator moved beyond the last
    round.
    """
    waiting = LostStateRecovery()
    waiting.enter(validator_set(), head(), CAME_BACK)
    waiting.message_received(stand_in_address(0), 8, 2**31 - 1)
    waiting.message_received(stand_in_address(1), 8, 3)
    durable_votes = waiting.joins(validator_set(), TIMING, CAME_BACK + 10)
    assert durable_votes is not None
    assert durable_votes.resume_round == 4


def test_if_all_validators_have_lost_their_votes_it_does_not_wait_for_ever() -> None:
    waiting = LostStateRecovery()
    waiting.enter(validator_set(), head(), CAME_BACK)
    assert waiting.joins(validator_set(), TIMING, CAME_BACK + 299) is None
    durable_votes = waiting.joins(validator_set(), TIMING, CAME_BACK + 300)
    assert durable_votes is not None
    assert durable_votes.resume_round == 1
