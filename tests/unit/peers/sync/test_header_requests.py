"""Tests the planning of header requests and linking of headers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.peers.sync.header_requests import STRETCH, HeaderPlan, HeaderRange, HeadersNotLinked
from ophion.primitives.header import HashedHeader
from ophion.testing.bft_chain import sealed_blocks

CHAIN = [header for header, _ in sealed_blocks("ibft2", 1, 1000)]
OTHER = [header for header, _ in sealed_blocks("qbft", 1, 1000)]
FIRST = CHAIN[0]


def headers(stretch: HeaderRange, chain: list[HashedHeader] = CHAIN) -> list[HashedHeader]:
    return chain[stretch.first - 1 : stretch.end - 1]


def test_stretches_cover_the_way_to_the_goal() -> None:
    plan = HeaderPlan(FIRST, 500)
    asked = []
    while (stretch := plan.next_stretch(10_000)) is not None:
        asked.append(stretch)
    assert asked == [HeaderRange(2, STRETCH), HeaderRange(194, STRETCH), HeaderRange(386, 115)]


def test_nothing_is_asked_for_beyond_the_horizon() -> None:
    plan = HeaderPlan(FIRST, 500)
    assert plan.next_stretch(193) is None
    assert plan.next_stretch(194) == HeaderRange(2, STRETCH)
    assert plan.next_stretch(300) is None


def test_headers_out_of_order_wait() -> None:
    plan = HeaderPlan(FIRST, 500)
    stretches = [plan.next_stretch(10_000) for _ in range(3)]
    first, second, third = (one for one in stretches if one is not None)
    assert plan.received(third, headers(third)) == []
    assert plan.received(second, headers(second)) == []
    assert plan.received(first, headers(first)) == CHAIN[1:500]
    assert plan.is_complete


def test_the_rest_of_a_short_answer_is_asked_for_again() -> None:
    plan = HeaderPlan(FIRST, 500)
    stretch = plan.next_stretch(10_000)
    assert stretch is not None
    assert plan.received(stretch, headers(stretch)[:100]) == CHAIN[1:101]
    assert plan.next_stretch(10_000) == HeaderRange(102, 92)
    assert plan.next_stretch(10_000) == HeaderRange(194, STRETCH)


def test_a_failed_stretch_is_requested_first() -> None:
    plan = HeaderPlan(FIRST, 1000)
    first, second = plan.next_stretch(10_000), plan.next_stretch(10_000)
    assert first is not None
    assert second is not None
    plan.give_back(second)
    plan.give_back(first)
    assert [plan.next_stretch(0), plan.next_stretch(0)] == [first, second]


def test_headers_of_another_chain_do_not_link() -> None:
    plan = HeaderPlan(FIRST, 500)
    stretch = plan.next_stretch(10_000)
    assert stretch is not None
    with pytest.raises(HeadersNotLinked):
        plan.received(stretch, headers(stretch, OTHER))


def test_a_filling_must_lead_from_post_to_post() -> None:
    plan = HeaderPlan(FIRST, 1000)
    assert plan.waits_for_posts
    assert plan.posts_from == 193
    plan.set_posts([CHAIN[192], CHAIN[384]])
    first, second = plan.next_stretch(10_000), plan.next_stretch(10_000)
    assert first is not None
    assert second is not None
    assert (first.last_hash, second.last_hash) == (CHAIN[192].hash, CHAIN[384].hash)
    assert plan.waits_for_posts
    with pytest.raises(HeadersNotLinked):
        plan.received(second, headers(second, OTHER))
    assert plan.received(first, headers(first)) == CHAIN[1:193]
    assert plan.received(second, headers(second)) == CHAIN[193:385]


def test_it_can_end_early() -> None:
    plan = HeaderPlan(FIRST, 500)
    stretch = plan.next_stretch(10_000)
    assert stretch is not None
    plan.received(stretch, headers(stretch)[:50])
    plan.end_here()
    assert plan.is_complete
    assert plan.next_stretch(10_000) is None


@given(st.integers(), st.integers(2, 1000))
def test_the_chain_is_complete_for_any_order_and_losses(seed: int, goal: int) -> None:
    random = Random(seed)
    plan = HeaderPlan(FIRST, goal)
    flying: list[HeaderRange] = []
    out: list[HashedHeader] = []
    take: Callable[[], HeaderRange | None] = lambda: plan.next_stretch(plan.last.number + 500)  # noqa: E731
    while not plan.is_complete:
        while len(flying) < 3 and (stretch := take()) is not None:
            flying.append(stretch)
        stretch = flying.pop(random.randrange(len(flying)))
        if random.random() < 0.3:
            plan.give_back(stretch)
        else:
            out += plan.received(stretch, headers(stretch)[: random.randint(1, stretch.count)])
    assert out == CHAIN[1:goal]
