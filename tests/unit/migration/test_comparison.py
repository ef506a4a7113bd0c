"""Compares random answers of two nodes, and tests which answers count as different."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ophion.errors import CommandError
from ophion.migration.comparison import Comparison
from ophion.runtime.blocking_json_rpc import Call, Failure, JsonRpcClient

SENDER, TARGET = "0x" + "11" * 20, "0x" + "22" * 20
HEIGHT = 5


def answer(method: str, params: Sequence[Any]) -> Any:
    """Return the answer of a small chain with one transaction in each block."""
    if method in ("eth_blockNumber", "eth_chainId"):
        return hex(HEIGHT)
    if method.startswith("eth_getBlock"):
        number = params[0] if method.endswith("Number") else params[0][-1:]
        transaction = {"hash": f"0xt{number}", "from": SENDER, "to": TARGET, "input": "0x01"}
        return {"hash": f"0x{'0' * 63}{number[-1]}", "miner": SENDER, "transactions": [transaction]}
    return [] if method == "eth_getLogs" else {"value": "0xAB"} if "Transaction" in method else "0x1"


class FakeNode(JsonRpcClient):
    """A node whose answers the test changes."""

    def __init__(
        self, change: Callable[[str, Sequence[Any], Any], Any] = lambda _method, _params, value: value
    ) -> None:
        super().__init__("http://127.0.0.1:1")
        self._change = change

    def batch(self, calls: Sequence[Call]) -> list[Any]:
        return [self._change(method, params, answer(method, params)) for method, params in calls]


def compare(old: FakeNode, new: FakeNode, count: int = 300) -> tuple[bool, Comparison]:
    comparison = Comparison(old, new, random.Random(1))
    return comparison.run(count), comparison


def replace(wanted: str, value: Any) -> Callable[[str, Sequence[Any], Any], Any]:
    return lambda method, _, usual: value if method == wanted else usual


def test_equal_nodes_are_equal() -> None:
    is_equal, comparison = compare(FakeNode(), FakeNode())
    assert is_equal
    assert sum(result.compared for result in comparison.methods.values()) == 300
    assert {"eth_call", "eth_getLogs", "eth_getTransactionReceipt", "eth_getCode"} <= comparison.methods.keys()


def test_a_different_value_is_reported_with_its_place() -> None:
    new = FakeNode(replace("eth_getTransactionReceipt", {"value": "0xAC", "logs": []}))
    is_equal, comparison = compare(FakeNode(), new)
    assert not is_equal
    found = comparison.methods["eth_getTransactionReceipt"]
    assert found.equal == 0
    assert (found.differences[0].place, found.differences[0].old, found.differences[0].new) == (
        ".value",
        "0xAB",
        "0xAC",
    )
    assert found.only_new["logs"] == found.compared


def test_case_and_additional_members_are_no_difference() -> None:
    assert compare(FakeNode(), FakeNode(replace("eth_getTransactionByHash", {"value": "0xab", "type": "0x0"})))[0]


@pytest.mark.parametrize("value", [None, [1], Failure(-32000, "missing"), True])
def test_another_kind_of_answer_is_a_difference(value: Any) -> None:
    assert not compare(FakeNode(), FakeNode(replace("eth_getLogs", value)))[0]


def test_a_call_that_only_the_old_node_refuses_is_a_difference() -> None:
    is_equal, comparison = compare(FakeNode(replace("eth_call", Failure(3, "reverted"))), FakeNode())
    assert not is_equal
    assert comparison.methods["eth_call"].skipped == 0
    refusing = FakeNode(replace("eth_call", Failure(3, "reverted")))
    is_equal, comparison = compare(refusing, FakeNode(replace("eth_call", Failure(-32000, "other"))))
    assert is_equal
    assert comparison.methods["eth_call"].failed == comparison.methods["eth_call"].compared


def test_states_that_the_old_node_has_pruned_are_skipped() -> None:
    def prune(method: str, params: Sequence[Any], usual: Any) -> Any:
        is_state = method == "eth_call" or (method.startswith("eth_get") and params[-1] == "0x2")
        return Failure(-32000, "missing trie node") if is_state and params[-1] == "0x2" else usual

    is_equal, comparison = compare(FakeNode(prune), FakeNode())
    assert is_equal
    assert sum(result.compared for result in comparison.methods.values()) == 300
    assert comparison.methods["eth_call"].skipped > 0


def test_nodes_of_different_networks_are_refused() -> None:
    with pytest.raises(CommandError, match="different chain ids"):
        compare(FakeNode(), FakeNode(replace("eth_chainId", "0x9")))
    with pytest.raises(CommandError, match="does not return its blocks"):
        compare(FakeNode(replace("eth_getBlockByNumber", None)), FakeNode())
