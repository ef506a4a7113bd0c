"""Tests the collection of round changes."""

from __future__ import annotations

from ophion.consensus.bft.round_change import RoundChanges, highest_claim
from tests.unit.consensus.bft.puppets import QBFT, Stage


def test_one_request_per_author_and_round_and_a_few_rounds_per_author() -> None:
    stage = Stage(QBFT, 0)
    changes = RoundChanges()
    assert changes.add(stage.hands[1].round_change(1, 1, None))
    assert not changes.add(stage.hands[1].round_change(1, 1, None))
    for number in range(2, 1000):
        assert changes.add(stage.hands[1].round_change(1, number, None))
    assert len(changes) == 3
    assert not changes.add(stage.hands[1].round_change(1, 7, None))
    assert changes.authors(999) == {stage.hands[1].address}
    assert changes.authors(7) == set()


def test_the_round_that_some_have_reached() -> None:
    stage = Stage(QBFT, 0)
    changes = RoundChanges()
    for index, number in ((1, 9), (2, 4), (3, 3)):
        changes.add(stage.hands[index].round_change(1, number, None))
    assert changes.reached_by(1, 0) == 9
    assert changes.reached_by(2, 0) == 4
    assert changes.reached_by(2, 4) is None
    assert changes.reached_by(3, 2) == 3
    assert changes.reached_by(4, 0) is None


def test_a_certificate_names_the_block_that_was_prepared_latest() -> None:
    stage = Stage(QBFT, 0)
    changes = RoundChanges()
    old = stage.prepared(stage.block(0), (0, 1, 2))
    new = stage.prepared(stage.block(1, 1, nonce=1), (0, 1, 2))
    for index, prepared in ((1, None), (2, old), (3, new)):
        changes.add(stage.hands[index].round_change(1, 2, prepared))
    changes.add(stage.hands[0].round_change(1, 3, None))
    certificate = changes.certificate(2)
    assert len(certificate.round_changes) == 3
    assert certificate.block == new.block
    assert certificate.prepares == new.prepares
    assert changes.certificate(3).block is None
    assert highest_claim([]) is None


def test_requests_for_rounds_that_have_passed_are_forgotten() -> None:
    stage = Stage(QBFT, 0)
    changes = RoundChanges()
    for number in (1, 2, 3):
        changes.add(stage.hands[1].round_change(1, number, None))
    changes.forget_below(3)
    assert len(changes) == 1
