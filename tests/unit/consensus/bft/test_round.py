"""Tests one round, and votes that arrive before the round starts."""

from __future__ import annotations

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.messages import Commit, Prepare
from ophion.consensus.bft.round import EarlyVotes, Round
from ophion.testing.simulation.fake_crypto import (
    Content,
    FakeMessageFactory,
    stand_in_address,
    stand_in_block,
    stand_in_seal_author,
)

HANDS = [FakeMessageFactory(stand_in_address(index), Ibft2()) for index in range(4)]
BLOCK = stand_in_block(1, HANDS[0].address, Content(bytes(32), 1, 0))
OTHER = stand_in_block(1, HANDS[0].address, Content(bytes(32), 1, 1))


def test_early_votes_are_judged_when_the_proposal_is_accepted() -> None:
    round_ = Round(0, stand_in_seal_author)
    assert round_.add_prepare(HANDS[1].prepare(1, 0, BLOCK.digest))
    assert round_.add_prepare(HANDS[2].prepare(1, 0, OTHER.digest))
    assert round_.add_commit(HANDS[1].commit(1, 0, BLOCK.digest, BLOCK.digest))
    assert round_.add_commit(HANDS[2].commit(1, 0, BLOCK.digest, OTHER.digest))
    round_.accept(HANDS[0].proposal(1, 0, BLOCK, None), BLOCK.digest)
    assert set(round_.prepares) == {HANDS[1].address}
    assert set(round_.commits) == {HANDS[1].address}


def test_the_first_vote_of_an_author_wins() -> None:
    round_ = Round(0, stand_in_seal_author)
    round_.accept(HANDS[0].proposal(1, 0, BLOCK, None), BLOCK.digest)
    assert not round_.add_prepare(HANDS[1].prepare(1, 0, OTHER.digest))
    assert round_.add_prepare(HANDS[1].prepare(1, 0, BLOCK.digest))
    assert not round_.add_prepare(HANDS[1].prepare(1, 0, BLOCK.digest))
    assert not round_.add_commit(HANDS[1].commit(1, 0, BLOCK.digest, OTHER.digest))
    assert round_.add_commit(HANDS[1].commit(1, 0, BLOCK.digest, BLOCK.digest))
    assert not round_.add_commit(HANDS[1].commit(1, 0, BLOCK.digest, BLOCK.digest))


def test_early_votes_are_bounded_per_author_and_the_latest_rounds_are_kept() -> None:
    early = EarlyVotes()
    for number in range(1, 1000):
        early.add(HANDS[1].prepare(1, number, BLOCK.digest))
        early.add(HANDS[1].prepare(1, number, OTHER.digest))
        early.add(HANDS[1].commit(1, number, BLOCK.digest, BLOCK.digest))
    early.add(HANDS[2].prepare(1, 5, BLOCK.digest))
    assert len(early) == 7
    assert [type(vote) for vote in early.start(998)] == [Prepare, Commit]
    assert len(early) == 2
    assert early.start(5) == []
