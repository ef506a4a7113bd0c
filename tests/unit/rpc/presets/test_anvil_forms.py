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


def sent(**members: Any) -> dict[str, Any]:
    """Return the members of a transaction request that the method gets, without those that are null."""
    (call,) = passed_on("eth_sendTransaction", [members])
    return {member: value for member, value in call.items() if value is not None}


ENTRY = {"address": ADDRESS, "storageKeys": []}


def test_a_gas_price_excludes_the_newer_fees() -> None:
    assert sent(gasPrice="0x5", maxFeePerGas="0x6", maxPriorityFeePerGas="0x1") == {"gasPrice": "0x5"}
    assert sent(maxFeePerGas="0x6", gasPrice=None) == {"maxFeePerGas": "0x6"}
    call = {"gasPrice": "0x5", "maxFeePerGas": "0x6"}
    assert passed_on("eth_call", [call]) == [call]


@pytest.mark.parametrize(
    "members",
    [
        {"type": "0x2", "gasPrice": "0x5"},
        {"type": "0x4", "gasPrice": "0x5"},
        {"type": "0x0", "maxFeePerGas": "0x5"},
        {"type": "0x1", "maxPriorityFeePerGas": "0x5"},
        {"type": "0x0", "accessList": [ENTRY]},
        {"type": "0x2", "authorizationList": [{}]},
        {"type": "0x2", "blobVersionedHashes": ["0x01"]},
        {"type": "0x3"},
        {"type": "0x4"},
    ],
)
def test_other_fields_choose_the_type_that_they_contradict(members: dict[str, Any]) -> None:
    rest = {member: value for member, value in members.items() if member != "type"}
    assert sent(**members) == rest


@pytest.mark.parametrize(
    "members",
    [
        {"type": "0x0"},
        {"type": "0x0", "gasPrice": "0x5", "accessList": []},
        {"type": "0x1", "accessList": [ENTRY]},
        {"type": "0x2", "maxFeePerGas": "0x5"},
        {"type": "0x3", "blobVersionedHashes": ["0x01"]},
        {"type": "0x4", "authorizationList": [{}]},
        {"type": "zz"},
        {"type": [1]},
        {"data": "0x01", "input": "0x01"},
        {"data": "0x01"},
        {"value": "1" * 79},
        {"value": "\u0661"},
    ],
)
def test_a_request_without_contradictions_stays(members: dict[str, Any]) -> None:
    assert sent(**members) == members


def test_an_empty_access_list_with_a_price_is_a_transaction_of_type_1() -> None:
    assert sent(gasPrice="0x5", accessList=[]) == {"gasPrice": "0x5", "accessList": [], "type": "0x1"}


def test_decimal_digits_are_a_number() -> None:
    assert sent(value="100", nonce="7", type="2") == {"value": "0x64", "nonce": "0x7", "type": "0x2"}


def test_input_has_priority_over_data() -> None:
    assert passed_on("eth_call", [{"data": "0x01", "input": "0x02"}]) == [{"data": None, "input": "0x02"}]


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
