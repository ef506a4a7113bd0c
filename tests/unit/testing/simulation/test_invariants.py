"""The checker detects violations."""

from __future__ import annotations

import pytest

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.message_buffer import MessageLimits
from ophion.consensus.bft.messages import BftMessage, PreparedRound
from ophion.consensus.bft.state_machine import BftStateMachine
from ophion.consensus.validator_votes import Tally
from ophion.testing.simulation.fake_crypto import (
    Content,
    FakeMessageFactory,
    stand_in_address,
    stand_in_block,
    stand_in_seal,
)
from ophion.testing.simulation.invariants import Checker
from ophion.testing.simulation.simulated_node import FinalBlock, SimulatedMember

RULES = Ibft2()
HANDS = [FakeMessageFactory(stand_in_address(index), RULES) for index in range(4)]
TALLY = Tally.of(hand.address for hand in HANDS)
GENESIS = FinalBlock(stand_in_block(0, bytes(20), Content(bytes(32), 0, 0)), 0, (), TALLY)
BLOCK, OTHER = (stand_in_block(1, HANDS[0].address, Content(GENESIS.hash, 1, nonce)) for nonce in (1, 2))


@pytest.fixture
def checker() -> Checker:
    return Checker(RULES, MessageLimits(), 4, frozenset((3,)))


def member(index: int, durable_votes: DurableVotes | None = None) -> SimulatedMember:
    found = SimulatedMember(index, HANDS[index].address, GENESIS)
    found.durable_votes = durable_votes
    return found


def rules_broken(checker: Checker) -> list[str]:
    return [violation.rule for violation in checker.violations]


def say(checker: Checker, index: int, message: BftMessage, durable_votes: DurableVotes | None) -> None:
    checker.on_say(member(index, durable_votes), message, 1.0)


def test_two_blocks_at_one_height(checker: Checker) -> None:
    for index, block in ((0, BLOCK), (1, BLOCK), (3, OTHER)):
        checker.on_final(member(index), FinalBlock(block, 0, (), TALLY), 1.0)
    assert checker.violations == []
    checker.on_final(member(2), FinalBlock(OTHER, 0, (), TALLY), 1.0)
    assert rules_broken(checker) == ["one block per height"]
    assert "V2" in str(checker.violations[0])


def test_a_decision_without_a_quorum_of_seals(checker: Checker) -> None:
    seals = tuple(stand_in_seal(hand.address, BLOCK.digest) for hand in HANDS[:3])
    checker.on_decision(member(0), FinalBlock(BLOCK, 0, seals, TALLY), 1.0)
    assert checker.violations == []
    checker.on_decision(member(0), FinalBlock(BLOCK, 0, seals[:2], TALLY), 1.0)
    assert rules_broken(checker) == ["a quorum of valid seals"]


def test_two_votes_in_one_round(checker: Checker) -> None:
    say(checker, 1, HANDS[1].prepare(1, 0, BLOCK.digest), DurableVotes(1, 0, BLOCK.digest))
    say(checker, 1, HANDS[1].prepare(1, 0, BLOCK.digest), DurableVotes(1, 0, BLOCK.digest))
    assert checker.violations == []
    say(checker, 1, HANDS[1].prepare(1, 0, OTHER.digest), DurableVotes(1, 0, OTHER.digest))
    assert rules_broken(checker) == ["one vote per round"]


def test_a_vote_in_a_round_that_was_left(checker: Checker) -> None:
    say(checker, 1, HANDS[1].round_change(1, 2, None), DurableVotes(1, 2))
    say(checker, 1, HANDS[1].prepare(1, 0, BLOCK.digest), DurableVotes(1, 2))
    assert rules_broken(checker) == ["rounds only go up"]


def test_a_message_that_is_not_remembered(checker: Checker) -> None:
    say(checker, 1, HANDS[1].prepare(1, 0, BLOCK.digest), None)
    say(checker, 2, HANDS[2].commit(1, 0, BLOCK.digest, BLOCK.digest), DurableVotes(1, 0, BLOCK.digest))
    assert rules_broken(checker) == ["remembered before announced"] * 2


def test_a_locked_block_that_is_replaced(checker: Checker) -> None:
    prepared = PreparedRound(0, BLOCK, (), None)
    for index in (0, 1):
        durable_votes = DurableVotes(1, 0, BLOCK.digest, prepared)
        say(checker, index, HANDS[index].commit(1, 0, BLOCK.digest, BLOCK.digest), durable_votes)
    assert checker.violations == []
    later = HANDS[2].with_round(OTHER, 1)
    say(checker, 2, HANDS[2].prepare(1, 1, later.digest), DurableVotes(1, 1, later.digest))
    assert "a locked block is not replaced" in rules_broken(checker)


def test_a_vote_in_a_later_round_for_nothing_that_was_proposed(checker: Checker) -> None:
    say(checker, 2, HANDS[2].prepare(1, 1, BLOCK.digest), DurableVotes(1, 1, BLOCK.digest))
    assert rules_broken(checker) == ["votes follow proposals"]


def test_a_later_proposal_without_certificate(checker: Checker) -> None:
    later = HANDS[1].with_round(BLOCK, 1)
    say(checker, 1, HANDS[1].proposal(1, 1, later, None), DurableVotes(1, 1, later.digest))
    assert rules_broken(checker) == ["later rounds are justified"]


def test_liars_may_say_what_they_like(checker: Checker) -> None:
    say(checker, 3, HANDS[3].prepare(1, 0, BLOCK.digest), None)
    say(checker, 3, HANDS[3].prepare(1, 0, OTHER.digest), None)
    assert checker.violations == []


def test_a_machine_that_hoards(checker: Checker) -> None:
    class Hoarder(BftStateMachine):
        def footprint(self) -> int:
            return 100_000

    checker.on_step(member(0), BftStateMachine(RULES, HANDS[0]), 1.0)
    assert checker.violations == []
    checker.on_step(member(0), Hoarder(RULES, HANDS[0]), 1.0)
    assert rules_broken(checker) == ["bounded memory"]


def test_a_stall(checker: Checker) -> None:
    checker.stalled(9.0, "height 3 not reached")
    assert str(checker.violations[0]) == "height grows after healing (at 9.000 s): height 3 not reached"
