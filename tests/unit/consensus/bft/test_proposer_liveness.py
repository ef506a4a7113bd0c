"""Whose turn is not worth waiting for."""

from __future__ import annotations

from ophion.consensus.bft.proposer_liveness import ProposerLiveness
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import ZERO_ADDRESS, Address
from ophion.testing.simulation.fake_crypto import stand_in_address

A, B, C, D = (stand_in_address(index) for index in range(4))
ALL = (A, B, C, D)


def absent(presence: ProposerLiveness, me: Address = D, validators: tuple[Address, ...] = ALL) -> frozenset[Address]:
    return presence.absent(ValidatorSet.of(1, validators, ZERO_ADDRESS), me)


def test_who_misses_a_turn_and_stays_silent_is_absent_until_it_is_heard() -> None:
    presence = ProposerLiveness(passes_over=True)
    presence.heard(A, 4.9)
    presence.missed_turn(A, since=5.0)
    assert absent(presence) == {A}
    presence.connected(A)
    assert absent(presence) == {A}, "a connection alone says nothing"
    presence.heard(A, 9.0)
    assert absent(presence) == frozenset()


def test_who_was_heard_during_its_turn_is_not_absent() -> None:
    presence = ProposerLiveness(passes_over=True)
    presence.heard(A, 5.1)
    presence.missed_turn(A, since=5.0)
    assert absent(presence) == frozenset()


def test_who_was_never_heard_of_is_absent_after_its_turn() -> None:
    presence = ProposerLiveness(passes_over=True)
    presence.missed_turn(A, since=5.0)
    assert absent(presence) == {A}


def test_a_broken_connection_counts_until_it_is_back_or_something_arrives_by_others() -> None:
    presence = ProposerLiveness(passes_over=True)
    for restore in (presence.connected, lambda peer: presence.heard(peer, 1.0)):
        presence.disconnected(A)
        assert absent(presence) == {A}
        restore(A)
        assert absent(presence) == frozenset()


def test_nobody_is_passed_over_where_the_rest_is_no_quorum() -> None:
    presence = ProposerLiveness(passes_over=True)
    presence.disconnected(A)
    presence.disconnected(B)
    assert absent(presence) == frozenset()
    presence.connected(B)
    assert absent(presence) == {A}
    assert absent(presence, me=D, validators=(A, D)) == frozenset()


def test_this_node_is_never_absent_to_itself() -> None:
    presence = ProposerLiveness(passes_over=True)
    presence.missed_turn(D, since=1.0)
    assert absent(presence, me=D) == frozenset()


def test_it_can_be_switched_off() -> None:
    presence = ProposerLiveness(passes_over=False)
    presence.missed_turn(A, since=5.0)
    presence.disconnected(B)
    assert absent(presence) == frozenset()


def test_only_validators_are_kept() -> None:
    presence = ProposerLiveness(passes_over=True)
    for index in range(100):
        presence.heard(stand_in_address(index), 1.0)
        presence.disconnected(stand_in_address(index))
    presence.keep(ALL)
    assert len(presence) == 4
    assert set(presence.heard_at) == set(ALL)
    assert absent(presence, validators=(*ALL, *(stand_in_address(index) for index in range(4, 60)))) == {A, B, C}


def test_strangers_that_come_and_go_while_nothing_is_decided_leave_little_behind() -> None:
    presence = ProposerLiveness(passes_over=True)
    presence.disconnected(A)
    for number in range(5000):
        presence.disconnected(b"stranger" + number.to_bytes(12, "big"))
    assert len(presence._gone) <= 1024
    assert absent(presence) == {A}
