"""Tests permissions with a real method table."""

from __future__ import annotations

import pytest

from ophion.errors import RpcError
from ophion.rpc.auth.method_permissions import allows, permitted_table
from ophion.rpc.schema.registry import HTTP, BoundMethod, MethodTable, Registry
from tests.unit.rpc.wire import Context, block_number

TABLE = Registry([block_number.__rpc__]).bind(Context(), {"eth"}, HTTP)  # type: ignore[attr-defined]


def refusal(bound: BoundMethod) -> int:
    with pytest.raises(RpcError) as caught:
        bound.invoke([], None)
    return caught.value.code


@pytest.mark.parametrize("entry", ["*:*", "eth:*", "eth:blockNumber"])
def test_three_entries_permit_a_method(entry: str) -> None:
    assert allows({entry, "net:*"}, "eth_blockNumber")


@pytest.mark.parametrize(
    "entry",
    ["", "*", "eth", "eth:", "eth:block", "eth:blocknumber", "ETH:blockNumber", "net:*", "*:blockNumber", "e:*"],
)
def test_nothing_else_does(entry: str) -> None:
    assert not allows({entry}, "eth_blockNumber")


def test_a_dot_is_as_good_as_an_underscore() -> None:
    assert allows({"rpc:discover"}, "rpc.discover")


def test_a_permitted_method_is_the_method_itself() -> None:
    assert permitted_table(TABLE, {"eth:*"})["eth_blockNumber"] is TABLE["eth_blockNumber"]


def test_a_method_without_permission_is_unauthorized() -> None:
    assert refusal(permitted_table(TABLE, {"net:*"})["eth_blockNumber"]) == -40100
    assert refusal(permitted_table(TABLE, ())["eth_blockNumber"]) == -40100


def test_an_exempt_method_needs_no_token() -> None:
    assert permitted_table(TABLE, (), ["eth_blockNumber"])["eth_blockNumber"] is TABLE["eth_blockNumber"]


def test_what_is_not_enabled_stays_so() -> None:
    disabled = Registry([block_number.__rpc__]).bind(Context(), {"net"}, HTTP)  # type: ignore[attr-defined]
    assert refusal(permitted_table(disabled, ())["eth_blockNumber"]) == -32604


def test_an_alias_is_permitted_with_its_method() -> None:
    bound = TABLE["eth_blockNumber"]
    table = permitted_table(MethodTable.of({"eth_head": bound}), {"eth:blockNumber"})
    assert table["eth_head"] is bound
