from __future__ import annotations

import asyncio

import pytest

from ophion.bench.load_step import LoadShape, LoadStep
from ophion.bench.search import SHAPES, RateSearch, SearchResult
from ophion.runtime.clock import ManualClock
from tests.unit.bench.steps import step_of


def found(
    capacity: float, budget_s: float = 10_000.0, most: float | None = None, shape: LoadShape | None = None
) -> SearchResult:
    """Search on a network with this capacity and return the result.

    Load whose shape is not `shape` gets a tenth of the capacity.
    """
    clock = ManualClock()

    async def run(rate: float, seconds: float, used: LoadShape) -> LoadStep:
        clock.advance(seconds)
        here = capacity if shape is None or used == shape else capacity / 10
        return step_of(rate, seconds, used, capacity=here, period=0.1)

    return asyncio.run(RateSearch(run, clock, 5.0, budget_s, most).find())


@pytest.mark.parametrize("capacity", [7.0, 90.0, 333.0, 1_000.0])
def test_the_capacity_is_found(capacity: float) -> None:
    best = found(capacity).best
    assert best is not None
    assert 0.85 * capacity <= best.rate <= 1.2 * capacity
    assert best.seconds == 15.0, "confirmed by a longer step"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_way_of_sending_that_works_best_is_found(shape: LoadShape) -> None:
    best = found(700.0, shape=shape).best
    assert best is not None
    assert best.shape == shape
    assert best.rate > 500


def test_a_rate_that_must_not_be_exceeded_is_not() -> None:
    outcome = found(4_000.0, most=250)
    assert outcome.best is not None
    assert max(step.rate for step in outcome.steps) == outcome.best.rate == 250
    assert outcome.limit.startswith("No bottleneck found")


def test_the_search_ends_in_time() -> None:
    outcome = found(1_000.0, budget_s=12.0)
    assert len(outcome.steps) <= 4
    assert outcome.best is not None


def test_what_was_kept_is_not_forgotten_when_a_network_does_not_recover() -> None:
    """After an overload, the network sustains no rate. The result is the last sustained rate, marked as unconfirmed."""
    clock, is_spoilt = ManualClock(), False

    async def run(rate: float, seconds: float, used: LoadShape) -> LoadStep:
        nonlocal is_spoilt
        clock.advance(seconds)
        is_spoilt = is_spoilt or rate > 1_000
        return step_of(rate, seconds, used, capacity=50.0 if is_spoilt else 1_000.0, period=0.1)

    outcome = asyncio.run(RateSearch(run, clock, 5.0, 10_000.0, None).find())
    assert outcome.best is not None
    assert (outcome.best.rate, outcome.best.seconds, outcome.is_confirmed) == (400.0, 5.0, False)


def test_a_network_that_takes_nothing_has_no_rate() -> None:
    outcome = found(0.2)
    assert outcome.best is None
    assert outcome.limit
