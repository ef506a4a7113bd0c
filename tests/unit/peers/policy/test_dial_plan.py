from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from ophion.peers.policy.dial_plan import NEAR_DELAY_S, PAUSE_S, STATIC_DELAYS, DialOutcome, DialPlan
from ophion.primitives.enode import Enode

OWN = b"\x01" * 64


class Middle(Random):
    """A random source that adds no jitter."""

    def random(self) -> float:
        return 0.5


def enode(number: int, ip: str = "127.0.0.1", port: int = 30303) -> Enode:
    return Enode(number.to_bytes(64, "big"), ip, port, port)


def plan(*static: Enode, random: Random | None = None) -> DialPlan:
    made = DialPlan(OWN, random or Middle())
    for one in static:
        made.add_static(one, 0.0)
    return made


def due(plan: DialPlan, now: float, busy: set[bytes] = frozenset(), free: int = 0) -> list[Enode]:  # type: ignore[assignment]
    return list(plan.due(now, busy, free))


def test_static_peers_are_dialled_at_once() -> None:
    one, two = enode(1), enode(2)
    made = plan(one, two)
    assert due(made, 0.0) == [one, two]
    assert due(made, 0.0, {one.node_id}) == [two]
    assert made.static_nodes == (one, two)


@pytest.mark.parametrize(
    ("ip", "expected"),
    [("10.0.0.1", [1.0, *[NEAR_DELAY_S] * 6]), ("8.8.8.8", [*[PAUSE_S] * 4, *[STATIC_DELAYS[-1]] * 3])],
    ids=["in a private network", "on the Internet"],
)
def test_failures_make_attempts_rarer(ip: str, expected: list[float]) -> None:
    one = replace(enode(1), ip=ip)
    made, now, waits = plan(one), 0.0, []
    for _ in range(7):
        made.ended(one.node_id, now, DialOutcome.FAILED)
        at = made.next_due((), 0)
        assert at is not None
        waits.append(at - now)
        assert due(made, at - 0.01) == []
        assert due(made, at) == [one]
        now = at
    assert waits == pytest.approx(expected)


def test_a_lost_connection_is_back_within_seconds_whatever_happened_before() -> None:
    one = enode(1)
    made = plan(one)
    for _ in range(5):
        made.ended(one.node_id, 0.0, DialOutcome.FAILED)
    made.ended(one.node_id, 1000.0, DialOutcome.LOST)
    assert made.next_due((), 0) == 1001.0
    made.ended(one.node_id, 1001.0, DialOutcome.FAILED)
    assert made.next_due((), 0) == 1002.0


def test_a_full_peer_is_asked_again_later_without_counting_as_failure() -> None:
    one = enode(1)
    made = plan(one)
    made.ended(one.node_id, 0.0, DialOutcome.FULL)
    assert made.next_due((), 0) == 30.0
    made.ended(one.node_id, 30.0, DialOutcome.DUPLICATE)
    assert made.next_due((), 0) == 35.0
    made.ended(one.node_id, 35.0, DialOutcome.FAILED)
    assert made.next_due((), 0) == 36.0


def test_a_public_address_is_not_dialled_more_often_than_every_thirty_seconds() -> None:
    one = enode(1, ip="8.8.8.8")
    made = plan(one)
    made.ended(one.node_id, 0.0, DialOutcome.LOST)
    assert made.next_due((), 0) == 30.0


def test_jitter_keeps_nodes_out_of_step_within_bounds() -> None:
    waits = set()
    for seed in range(50):
        one = enode(1)
        made = plan(one, random=Random(seed))
        made.ended(one.node_id, 0.0, DialOutcome.LOST)
        at = made.next_due((), 0)
        assert at is not None
        waits.add(at)
        assert 0.8 <= at <= 1.2
    assert len(waits) > 40


def test_the_own_node_and_what_is_there_are_not_added() -> None:
    one = enode(1)
    made = plan(one)
    assert not made.add_static(one, 0.0)
    assert not made.add_static(Enode(OWN, "127.0.0.1", 1, 1), 0.0)
    assert made.add_static(enode(1, port=30304), 0.0), "the full enode is the identity of an entry"
    assert due(made, 0.0) == [one], "one attempt at a node at a time"
    assert made.is_static(one.node_id)
    assert made.remove_static(one)
    assert not made.remove_static(one)
    assert made.is_static(one.node_id)
    assert made.is_static_address("127.0.0.1")
    assert made.remove_static(enode(1, port=30304))
    assert not made.is_static(one.node_id)
    assert made.next_due((), 5) is None


def test_discovered_peers_are_dialled_below_the_peer_limit() -> None:
    made = plan()
    for number in range(1, 6):
        made.offer(enode(number), float(number))
    assert due(made, 10.0, free=2) == [enode(1), enode(2)]
    assert due(made, 10.0, {enode(1).node_id}, free=2) == [enode(2), enode(3)]
    assert due(made, 2.0, free=9) == [enode(1), enode(2)]
    assert made.next_due((), 0) is None
    assert made.next_due((), 1) == 1.0


def test_a_discovered_peer_is_left_alone_for_a_while_and_forgotten_after_failures() -> None:
    made = plan()
    made.offer(enode(1), 0.0)
    now, waits = 0.0, []
    for _ in range(4):
        made.ended(enode(1).node_id, now, DialOutcome.FAILED)
        at = made.next_due((), 1)
        assert at is not None
        waits.append(at - now)
        now = at
    assert waits == [30.0, 60.0, 120.0, 240.0]
    made.offer(enode(1, port=30309), now)
    assert due(made, now, free=1) == [enode(1, port=30309)], "it moved"
    made.ended(enode(1).node_id, now, DialOutcome.FAILED)
    assert made.next_due((), 1) is None


def test_what_cannot_be_dialled_is_not_offered() -> None:
    made = plan()
    made.offer(Enode(OWN, "127.0.0.1", 1, 1), 0.0)
    made.offer(enode(2, port=0), 0.0)
    made.offer(enode(3), 0.0)
    made.forget(enode(3).node_id)
    assert due(made, 0.0, free=9) == []


def test_candidates_are_bounded() -> None:
    made = plan()
    for number in range(1, 2000):
        made.offer(enode(number), 0.0)
    assert len(due(made, 0.0, free=5000)) == 512


def test_unknown_nodes_evict_no_validator() -> None:
    member = enode(1)
    made = DialPlan(OWN, Middle(), lambda node_id: node_id == member.node_id)
    made.offer(member, 0.0)
    for number in range(2, 1000):
        made.offer(enode(number), 0.0)
    assert due(made, 0.0) == [member]


def test_a_node_that_is_static_and_discovered_is_dialled_once() -> None:
    made = plan(enode(1))
    made.offer(enode(1), 0.0)
    assert due(made, 0.0, free=3) == [enode(1)]


def test_a_named_peer_is_dialled_when_its_address_is_known_and_again_when_it_changes() -> None:
    named = Enode(b"\x09" * 64, "", 30303, 30303, "validator-1")
    dials = plan(named)
    assert due(dials, 0.0) == []
    assert dials.next_due(set(), 0) is None
    dials.ended(named.node_id, 0.0, DialOutcome.LOST)
    dials.readdress(lambda one: one.at("127.0.0.1"), 1.0)
    assert due(dials, 1.0) == [named.at("127.0.0.1")]
    assert dials.is_static_address("127.0.0.1")
    dials.ended(named.node_id, 1.0, DialOutcome.FAILED)
    assert due(dials, 1.0) == []
    dials.readdress(lambda one: one.at("127.0.0.2"), 1.0)
    assert due(dials, 1.0) == [named.at("127.0.0.2")]
    assert dials.remove_static(named)
