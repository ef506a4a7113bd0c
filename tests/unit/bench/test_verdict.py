from __future__ import annotations

import pytest

from ophion.bench.load_step import LoadShape, LoadStep
from ophion.bench.verdict import is_sustained, limit_of, percentile, period_of
from tests.unit.bench.steps import step_of


def test_percentiles() -> None:
    values = [float(number) for number in range(1, 101)]
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.99) == 99
    assert percentile([7.0], 0.99) == 7
    assert percentile([], 0.5) is None


@pytest.mark.parametrize(("rate", "holds"), [(10, True), (900, True), (1_000, True), (1_800, False), (5_000, False)])
def test_a_network_keeps_up_with_what_it_can_take(rate: float, holds: bool) -> None:
    assert is_sustained(step_of(rate, capacity=1_000)) is holds


def test_what_is_refused_or_never_mined_is_too_much() -> None:
    assert not is_sustained(step_of(10, refused="Transaction pool is full"))
    lost = step_of(10)
    lost.drained_s = None
    assert not is_sustained(lost)


def test_a_client_that_cannot_send_on_time_proves_nothing() -> None:
    late = step_of(10)
    late.late_s = 1.0
    assert not is_sustained(late)
    assert limit_of(late).startswith("This program could not send faster")
    late.answer_s = [0.4]
    assert limit_of(late) == "The node took 400 ms (median) to answer single requests on 8 connections."


def test_what_held_it_back_is_said() -> None:
    assert limit_of(step_of(10, refused="Nonce too low")) == "The node refused 3 of 40 transactions: Nonce too low"
    lost = step_of(100)
    lost.drained_s, lost.mined_s = None, lost.mined_s[:300]
    assert limit_of(lost).startswith("100 of 400 transactions were accepted and never mined: ")
    full = step_of(2_000, gas_limit=21_000_000)
    assert limit_of(full) == (
        "Blocks are full: 1000 transactions fill the gas limit of 21,000,000; there is one every 1.00 s."
    )
    assert limit_of(step_of(2_000)).startswith("Blocks did not take what waited for them: at most 1000 transactions")


def test_the_time_between_blocks() -> None:
    assert period_of(step_of(100, period=0.5)) == 0.5
    assert period_of(LoadStep(1.0, 5.0, LoadShape(1, 1))) == 5.0
