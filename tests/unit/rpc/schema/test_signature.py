"""Tests signatures of handlers: wire types of parameters and results."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import pytest

from ophion.primitives.types import BlockTag
from ophion.rpc.methods import all_methods
from ophion.rpc.schema.registry import HTTP, MethodSpec, Registry, method
from ophion.rpc.schema.wire_types import AddressParam, BlockParam, IntegerParam, Quantity
from tests.unit.rpc.wire import Context


def spec_of(function: Any) -> MethodSpec:
    spec: MethodSpec = function.__rpc__
    return spec


@method("eth_some", aliases=["eth_other"], needs={"chain"})
def some(
    ctx: Any, from_address: AddressParam, block: BlockParam = BlockTag.LATEST
) -> Quantity | Awaitable[Quantity | None] | None:
    """One line.

    More lines.
    """
    return len(from_address)


def test_the_signature_says_what_a_method_takes_and_gives() -> None:
    spec = spec_of(some)
    assert (spec.summary, spec.description, spec.group) == ("One line.", "More lines.", "eth")
    assert [parameter.name for parameter in spec.signature.parameters] == ["fromAddress", "block"]
    assert spec.signature.parameters[1].default is BlockTag.LATEST
    assert spec.signature.result.name == "quantity"
    assert spec.signature.nullable
    assert spec.names == ("eth_some", "eth_other")


def test_a_parameter_without_a_wire_type_fails_when_it_is_read() -> None:
    @method("eth_bad")
    def bad(ctx: Any, x: int) -> Quantity:
        return x

    with pytest.raises(TypeError, match="eth_bad: parameter x"):
        _ = spec_of(bad).signature


def test_a_parameter_may_take_all_positions_but_not_some() -> None:
    @method("eth_sum")
    def total(ctx: Any, *numbers: IntegerParam) -> Quantity:
        return sum(numbers)

    bound = Registry([spec_of(total)]).bind(Context(), ["eth"], HTTP)["eth_sum"]
    assert (bound.invoke([], None), bound.invoke([1, 2, 3], None)) == (0, 6)

    @method("eth_more")
    def more(ctx: Any, first: IntegerParam, *others: IntegerParam) -> Quantity:
        return first + sum(others)

    with pytest.raises(TypeError, match="eth_more: a repeated parameter"):
        _ = spec_of(more).signature


def test_a_result_without_a_wire_type_fails_when_it_is_read() -> None:
    @method("eth_bad")
    def bad(ctx: Any) -> int:
        return 1

    with pytest.raises(TypeError, match="eth_bad: the result"):
        _ = spec_of(bad).signature


def test_every_method_of_the_node_can_be_read_and_written() -> None:
    signatures = [spec.signature for spec in all_methods().specs]
    assert len(signatures) > 150
    assert all(signature.result.encode is not None for signature in signatures)
