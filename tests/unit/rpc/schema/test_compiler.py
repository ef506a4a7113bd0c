"""Compiled signatures behave like the general functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ophion.errors import RpcError
from ophion.rpc.schema.compiler import compile_invoke, compile_steps
from ophion.rpc.schema.registry import MethodSpec, method
from ophion.rpc.schema.wire_types import IntegerParam, Quantity


def spec_of(function: Any) -> MethodSpec:
    spec: MethodSpec = function.__rpc__
    return spec


def none(ctx: Any) -> Quantity:
    return 0


def one(ctx: Any, a: IntegerParam) -> Quantity:
    return a


def one_optional(ctx: Any, a: IntegerParam = 7) -> Quantity:
    return a


def two(ctx: Any, a: IntegerParam, b: IntegerParam = 5) -> Quantity:
    return a * 100 + b


def three(ctx: Any, a: IntegerParam, b: IntegerParam, c: IntegerParam) -> Quantity:
    return a * 10_000 + b * 100 + c


def three_optional(ctx: Any, a: IntegerParam, b: IntegerParam = 3, c: IntegerParam = 4) -> Quantity:
    return a * 10_000 + b * 100 + c


def repeated(ctx: Any, *all: IntegerParam) -> Quantity:
    return sum(all)


PARAMS: tuple[Sequence[Any], ...] = (
    [], [None], [1], ["x"], [1, 2], [None, 2], [1, None], [1, "x"], [1, 2, 3], [1, 2, None], [1, None, 3], [1, 2, "x"],
    [1, 2, 3, 4],
)  # fmt: skip


def outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except RpcError as error:
        return type(error), error.code, str(error)


@pytest.mark.parametrize("handler", [none, one, one_optional, two, three, three_optional, repeated])
@pytest.mark.parametrize("exact_count", [False, True])
def test_a_compiled_call_agrees_with_decoding_and_calling(handler: Callable[..., int], exact_count: bool) -> None:
    spec = spec_of(method("eth_x", exact_count=exact_count)(handler))
    invoke = compile_invoke(spec, None)
    decode, call = compile_steps(spec, None)
    for params in PARAMS:
        expected = outcome(lambda params=params: call(decode(params), None))  # type: ignore[misc]
        assert outcome(lambda params=params: invoke(params, None)) == expected, params  # type: ignore[misc]
