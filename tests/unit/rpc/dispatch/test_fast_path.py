"""Fast path: Rust answers plain requests about the newest block.

The test sends each request twice: with a number as id, for the fast path, and with a text as id, for the slow path.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.metrics.requests import RequestMetrics
from ophion.native.executor import LatestRead
from ophion.rpc.auth.method_permissions import permitted_table
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.endpoints.services import method_table
from ophion.rpc.schema.registry import HTTP, BoundMethod
from ophion.runtime.metrics_registry import MetricsRegistry
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.contracts import deploying
from tests.unit.rpc.interface import GROUPS, Interface, open_interface

RICH = "0x" + DEV_KEYS[0].address.hex()
NOBODY = "0x" + "77" * 20
ECHO = bytes.fromhex("365f5f37365ff3")  # this contract returns its input
REVERTING = bytes.fromhex("5f5ffd")
ENDLESS = bytes.fromhex("5b5f56")


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Interface]:
    with open_interface(tmp_path) as interface:
        yield interface


def deployed(dev: Interface, code: bytes, nonce: int) -> str:
    raw = legacy_transaction(DEV_KEYS[1], nonce, to=None, gas=200_000, data=deploying(code))
    _, (sent,) = dev.run(dev.node.mine(raw))
    contract: str = dev.ask("eth_getTransactionReceipt", "0x" + sent.hex())["contractAddress"]
    return contract


def asked(dev: Interface, method: str, *params: Any, dispatcher: Dispatcher | None = None) -> Any:
    """Return the answer, which must be the same on both paths. The test sends the request twice, because the fast path
    knows a method only from its second call on.
    """
    answers = []
    for id in (1, "1", 1, 1):
        text = json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
        answer = dev.message(text, dispatcher)
        assert answer.pop("id") == id
        answers.append(answer)
    assert all(answer == answers[0] for answer in answers), (method, params, answers)
    return answers[0].get("result", answers[0].get("error"))


def test_numbers_accounts_and_calls_are_those_of_the_newest_block(dev: Interface) -> None:
    assert asked(dev, "eth_blockNumber") == "0x0"
    echo = deployed(dev, ECHO, 0)
    assert asked(dev, "eth_blockNumber") == "0x1"
    balance = asked(dev, "eth_getBalance", RICH)
    assert asked(dev, "eth_getBalance", RICH, "latest") == balance != "0x0"
    assert asked(dev, "eth_getTransactionCount", "0x" + DEV_KEYS[1].address.hex(), "latest") == "0x1"
    assert asked(dev, "eth_call", {"to": echo, "data": "0x1234"}, "latest") == "0x1234"
    assert asked(dev, "eth_call", {"to": echo, "input": "0xAB"}) == "0xab"
    dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[0], 0, to=bytes.fromhex(NOBODY[2:]), value=5)))
    assert asked(dev, "eth_blockNumber") == "0x2"
    assert asked(dev, "eth_getBalance", NOBODY, "latest") == "0x5"
    assert asked(dev, "eth_getTransactionCount", RICH) == "0x1"
    assert asked(dev, "eth_getBalance", RICH, "latest") != balance


def test_whatever_else_is_asked_is_answered_as_before(dev: Interface) -> None:
    echo, reverting = deployed(dev, ECHO, 0), deployed(dev, REVERTING, 1)
    endless = deployed(dev, ENDLESS, 2)
    for params in (
        (RICH[2:],),
        (RICH.upper().replace("X", "x"), "latest"),
        (RICH, "earliest"),
        (RICH, "0x1"),
        (RICH, "pending"),
        (RICH, "safe"),
        (RICH, "LATEST"),
        (RICH, "latest", "more"),
        (RICH, "0x99"),
        ("0x12", "latest"),
        ("", "latest"),
        (True,),
        ({"to": RICH},),
        (),
    ):
        asked(dev, "eth_getBalance", *params)
        asked(dev, "eth_getTransactionCount", *params)
        asked(dev, "eth_call", *params)
        asked(dev, "eth_blockNumber", *params)
    for call in (
        {"to": echo, "data": "0x1"},
        {"to": echo, "data": "0x", "input": "0x"},
        {"to": echo, "gas": "0x1"},
        {"to": echo, "gas": "0x0"},
        {"to": echo, "value": "0x0"},
        {"to": echo, "gasPrice": "0x1"},
        {"to": echo, "chainId": "0x1"},
        {"to": echo, "from": RICH, "data": "0x" + "11" * 20_000},
        {"to": reverting},
        {"to": NOBODY},
        {"data": "0x" + deploying(ECHO).hex()},
        {},
    ):
        asked(dev, "eth_call", call, "latest")
    assert asked(dev, "eth_call", {"to": endless, "gas": hex(30_000_000)})["message"] == "out of gas"
    assert dev.context.light_calls.tried.is_heavy(bytes.fromhex(endless[2:]), b"")


def test_who_may_not_ask_is_not_answered_because_another_may(dev: Interface) -> None:
    table = method_table(dev.context, GROUPS, HTTP)
    some = Dispatcher(permitted_table(table, {"eth:blockNumber"}), dev.loop)
    every = Dispatcher(permitted_table(table, {"*:*"}), dev.loop)
    assert asked(dev, "eth_getBalance", RICH, dispatcher=every) != "0x0"
    assert asked(dev, "eth_getBalance", RICH, dispatcher=some)["message"] == "Unauthorized"
    assert asked(dev, "eth_blockNumber", dispatcher=some) == "0x0"
    none = Dispatcher(method_table(dev.context, ("net",), HTTP), dev.loop)
    assert asked(dev, "eth_blockNumber", dispatcher=none)["code"] == -32604


def test_a_handler_is_asked_once_and_then_when_a_call_needs_terms(dev: Interface) -> None:
    asked_for: list[str] = []

    def noted(name: str, bound: BoundMethod) -> BoundMethod:
        def invoke(params: Any, caller: Any) -> Any:
            asked_for.append(name)
            return bound.invoke(params, caller)

        return bound._replace(invoke=invoke)

    watched = Dispatcher(method_table(dev.context, GROUPS, HTTP).map(noted), dev.loop)

    def ask_each() -> list[str]:
        asked_for.clear()
        for method, *params in (
            ("eth_blockNumber",),
            ("eth_getBalance", RICH, "latest"),
            ("eth_getTransactionCount", RICH),
            ("eth_call", {"to": NOBODY, "data": "0x"}, "latest"),
        ):
            for _ in range(3):
                text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
                assert "result" in dev.message(text, watched)
        return list(asked_for)

    assert ask_each() == ["eth_blockNumber", "eth_getBalance", "eth_getTransactionCount", "eth_call"]
    assert ask_each() == []
    dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[0], 0, to=bytes.fromhex(NOBODY[2:]), value=5)))
    assert ask_each() == ["eth_call"]


def test_each_is_counted_where_requests_are_measured(dev: Interface) -> None:
    metrics = RequestMetrics(MetricsRegistry())
    measured = Dispatcher(metrics.measured(method_table(dev.context, GROUPS, HTTP)), dev.loop)
    text = b'{"jsonrpc":"2.0","id":1,"method":"%b","params":[]}'
    for _ in range(1000):
        measured.handle(text % b"eth_blockNumber")
        measured.handle(text % b"eth_getBalance")
    assert sum(metrics.times.of("eth_blockNumber").counts) == 1000
    assert sum(metrics.times.of("eth_getBalance").counts) == 1000
    assert metrics.errors.values == {("eth_getBalance", "-32602"): 1000}


def test_what_asks_the_newest_block_is_declared_with_the_method(dev: Interface) -> None:
    table = method_table(dev.context, GROUPS, HTTP)
    reading = {name for name in table.names if isinstance(table[name].latest_read, LatestRead)}
    assert reading == {"eth_blockNumber", "eth_getBalance", "eth_getTransactionCount", "eth_call"}


WORDS = st.one_of(
    st.sampled_from([RICH, NOBODY, "latest", "earliest", "pending", "0x0", "0x", ""]),
    st.text("0x1fF", max_size=44),
    st.booleans(),
    st.dictionaries(
        st.sampled_from(["to", "from", "data", "input", "gas", "value"]),
        st.one_of(st.sampled_from([RICH, NOBODY]), st.text("0x1fF", max_size=8)),
        max_size=4,
    ),
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interface]:
    with open_interface(tmp_path_factory.mktemp("newest")) as interface:
        yield interface


@given(
    method=st.sampled_from(["eth_blockNumber", "eth_getBalance", "eth_getTransactionCount", "eth_call"]),
    params=st.lists(WORDS, max_size=3),
)
def test_both_ways_say_the_same_whatever_the_words(shared: Interface, method: str, params: list[Any]) -> None:
    asked(shared, method, *params)
