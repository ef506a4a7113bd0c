"""Requests that a node with the preset of Anvil takes although this node otherwise refuses them."""

from __future__ import annotations

from typing import Any

import pytest

from ophion.rpc.presets.anvil_forms import accept_anvil_forms
from ophion.rpc.schema.method_table import BoundMethod, MethodTable

ADDRESS = "0x" + "11" * 20


def passed_on(name: str, params: Any) -> Any:
    """Return the parameters that the method gets, in both ways in which a dispatcher calls methods."""
    bound = BoundMethod(
        invoke=lambda values, caller: values,
        encode=lambda value: b"",
        may_wait=False,
        name=name,
        decode=list,
        call=lambda values, caller: values,
    )
    taken = accept_anvil_forms(MethodTable.of({name: bound}))[name]
    assert taken.decode is not None
    whole = taken.invoke(params, None)
    assert taken.call(taken.decode(params), None) == list(whole)
    return whole


@pytest.mark.parametrize("name", ["eth_call", "eth_estimateGas", "eth_sendTransaction", "eth_signTransaction"])
@pytest.mark.parametrize(
    "member", ["value", "gas", "gasPrice", "nonce", "maxFeePerGas", "maxPriorityFeePerGas", "type"]
)
def test_a_number_without_digits_is_zero(name: str, member: str) -> None:
    given = {"to": ADDRESS, member: "0x", "data": "0x"}
    assert passed_on(name, [given, "latest"]) == [{"to": ADDRESS, member: "0x0", "data": "0x"}, "latest"]
    assert given[member] == "0x"


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("eth_call", [{"to": "0x", "data": "0x", "input": "0x"}, "latest"]),
        ("eth_call", [{"to": ADDRESS, "value": "0x1"}]),
        ("eth_call", [5]),
        ("eth_call", []),
        ("eth_feeHistory", ["0x", "latest"]),
        ("eth_getBalance", [ADDRESS, "0x"]),
    ],
)
def test_other_parameters_stay(name: str, params: list[Any]) -> None:
    assert passed_on(name, params) == params
