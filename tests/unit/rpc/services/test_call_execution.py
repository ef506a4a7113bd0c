"""Tests where calls run, and how outcomes become answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar, cast

import pytest
from msgspec.structs import replace

from ophion.errors import RpcError
from ophion.native.executor import AccountOverride
from ophion.native.executor import call as executor_call
from ophion.rpc.services.call_execution import gas_for, run_call, run_estimate
from ophion.rpc.services.call_object import Call
from ophion.rpc.services.context import RpcContext
from ophion.runtime.thread_pools import InlineLanes
from tests.unit.rpc.contracts import CALLER, HEAVY
from tests.unit.rpc.interface import Interface

T = TypeVar("T")
CONTRACT = b"\xcc" * 20


class CountingLane:
    """A lane (job queue) that counts its jobs."""

    name = "read"
    waiting = 0

    def __init__(self) -> None:
        self.jobs = 0

    async def run(self, job: Callable[[], T], deadline_s: float | None = None) -> T:
        self.jobs += 1
        return job()


@pytest.fixture
def lane() -> CountingLane:
    return CountingLane()


@pytest.fixture
def context(dev: Interface, lane: CountingLane) -> RpcContext:
    lanes = InlineLanes()
    lanes.read = lane  # type: ignore[assignment]
    return replace(dev.context, lanes=lanes)


def call(context: RpcContext, wanted: Call, code: bytes) -> bytes:
    queries = context.queries
    overrides = [AccountOverride(address=CONTRACT, code=code)]
    outcome = run_call(context, queries.head_state, queries.head_env, 2**40, wanted, overrides)

    async def wait() -> bytes:
        return outcome if isinstance(outcome, bytes) else await outcome

    return asyncio.run(wait())


def test_the_first_call_of_its_kind_runs_in_the_lane_and_the_next_does_not(
    context: RpcContext, lane: CountingLane
) -> None:
    for _ in range(3):
        assert call(context, Call(to=CONTRACT), CALLER) == bytes(32)
    assert lane.jobs == 1


def test_a_heavy_call_runs_in_the_lane_every_time(context: RpcContext, lane: CountingLane) -> None:
    for _ in range(2):
        with pytest.raises(RpcError, match="out of gas"):
            call(context, Call(to=CONTRACT, gas=3_000_000), HEAVY)
    assert lane.jobs == 2


def test_gas_is_what_was_asked_for_below_the_cap_of_the_node(context: RpcContext) -> None:
    assert gas_for(context, Call(), 30_000_000) == 30_000_000
    assert gas_for(context, Call(), 10**12) == 50_000_000
    assert gas_for(context, Call(gas=5), 30_000_000) == 5
    assert gas_for(context, Call(gas=2**80), 30_000_000) == 50_000_000
    uncapped = replace(context, limits=replace(context.limits, gas_cap=0))
    assert gas_for(uncapped, Call(), 10**12) == 10**12
    assert gas_for(uncapped, Call(gas=2**80), 10**12) == 10**12


def estimate(context: RpcContext, code: bytes, gas: int | None = None) -> int:
    queries = context.queries
    overrides = [AccountOverride(address=CONTRACT, code=code)]
    wanted = Call(to=CONTRACT, gas=gas, input=b"\x11\x22\x33\x44")
    return asyncio.run(run_estimate(context, queries.head_state, queries.head_env, 2**40, wanted, overrides))


def test_a_short_estimate_runs_at_once(context: RpcContext, lane: CountingLane) -> None:
    assert 21_000 < estimate(context, CALLER) < 30_000
    assert lane.jobs == 0


def test_a_long_estimate_is_tried_once_and_then_runs_in_the_lane(context: RpcContext, lane: CountingLane) -> None:
    in_lane = []
    for _ in range(3):
        with pytest.raises(RpcError, match="do not suffice"):
            estimate(context, HEAVY, 30_000_000)
        in_lane.append((lane.jobs, context.light_calls.repeated.may_try(CONTRACT, b"\x11\x22\x33\x44")))
    assert in_lane == [(1, False), (2, False), (3, False)]


def test_a_node_with_a_preset_estimates_the_least_gas(context: RpcContext) -> None:
    about = estimate(context, CALLER)
    dev = cast(Any, SimpleNamespace(identity=SimpleNamespace(preset="anvil"), observer=None))
    least = estimate(replace(context, dev=dev), CALLER)
    queries, overrides = context.queries, [AccountOverride(address=CONTRACT, code=CALLER)]
    wanted = Call(to=CONTRACT, input=b"\x11\x22\x33\x44")
    kinds = [
        executor_call(queries.head_state, queries.head_env, wanted.request(gas), overrides, 1).kind
        for gas in (least - 1, least)
    ]
    assert [kind == "returned" for kind in kinds] == [False, True]
    assert least <= about
