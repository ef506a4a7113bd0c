"""Validators skip the rounds of offline proposers."""

from __future__ import annotations

from ophion.consensus.bft.proposer_liveness import ProposerLiveness
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import ZERO_ADDRESS, Address
from ophion.testing.simulation.fake_crypto import stand_in_address

A, B, C, D = (stand_in_address(index) for index in range(4))
ALL = (A, B, C, D)


def absent(liveness: ProposerLiveness, me: Address = D, validators: tuple[Address, ...] = ALL) -> frozenset[Address]:
    return liveness.absent(ValidatorSet.of(1, validators, ZERO_ADDRESS), me)


def test_a_silent_proposer_is_absent_until_its_next_message() -> None:
    liveness = ProposerLiveness(passes_over=True)
    liveness.message_received(A, 4.9)
    liveness.missed_turn(A, since=5.0)
    assert absent(liveness) == {A}
    liveness.connected(A)
    assert absent(liveness) == {A}, "a connection alone says nothing"
    liveness.message_received(A, 9.0)
    assert absent(liveness) == frozenset()


def test_a_proposer_that_sent_a_message_during_its_round_is_not_absent() -> None:
    liveness = ProposerLiveness(passes_over=True)
    liveness.message_received(A, 5.1)
    liveness.missed_turn(A, since=5.0)
    assert absent(liveness) == frozenset()


def test_a_proposer_without_any_message_is_absent_after_its_round() -> None:
    liveness = ProposerLiveness(passes_over=True)
    liveness.missed_turn(A, since=5.0)
    assert absent(liveness) == {A}


def test_a_broken_connection_counts_until_it_is_back_or_something_arrives_by_others() -> None:
    liveness = ProposerLiveness(passes_over=True)
    for restore in (liveness.connected, lambda peer: liveness.message_received(peer, 1.0)):
        liveness.disconnected(A)
        assert absent(liveness) == {A}
        restore(A)
        assert absent(liveness) == frozenset()


def test_no_proposer_is_passed_over_if_the_others_are_no_quorum() -> None:
    liveness = ProposerLiveness(passes_over=True)
    liveness.disconnected(A)
    liveness.disconnected(B)
    assert absent(liveness) == frozenset()
    liveness.connected(B)
    assert absent(liveness) == {A}
    assert absent(liveness, me=D, validators=(A, D)) == frozenset()


def test_this_node_is_never_absent_to_itself() -> None:
    liveness = ProposerLiveness(passes_over=True)
    liveness.missed_turn(D, since=1.0)
    assert absent(liveness, me=D) == frozenset()


def test_it_can_be_switched_off() -> None:
    liveness = ProposerLiveness(passes_over=False)
    liveness.missed_turn(A, since=5.0)
    liveness.disconnected(B)
    assert absent(liveness) == frozenset()


def test_only_validators_are_kept() -> None:
    liveness = ProposerLiveness(passes_over=True)
    for index in range(100):
        liveness.message_received(stand_in_address(index), 1.0)
        liveness.disconnected(stand_in_address(index))
    liveness.keep(ALL)
    assert len(liveness) == 4
    assert set(liveness.received_at) == set(ALL)
    assert absent(liveness, validators=(*ALL, *(stand_in_address(index) for index in range(4, 60)))) == {A, B, C}


def test_strangers_that_come_and_go_while_nothing_is_decided_leave_little_behind() -> None:
    liveness = ProposerLiveness(passes_over=True)
    liveness.disconnected(A)
    for number in range(5000):
        liveness.disconnected(b"stranger" + number.to_bytes(12, "big"))
    assert len(liveness._gone) <= 1024
    assert absent(liveness) == {A}
