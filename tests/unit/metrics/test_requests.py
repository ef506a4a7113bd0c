"""Tests the counting and timing of requests."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ophion.metrics.requests import RequestMetrics
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.schema.registry import BoundMethod, MethodTable
from ophion.rpc.transport.replies import PendingReply, Reply
from ophion.runtime.metrics_registry import MetricsRegistry
from tests.unit.rpc.wire import Panic


def encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def table() -> MethodTable:
    def fails(params: Any, caller: Any) -> Any:
        raise ValueError("a bug")

    async def waits(error: bool) -> int:
        await asyncio.sleep(0)
        if error:
            raise ValueError("a bug")
        return 2

    def future(params: Any, caller: Any) -> Any:
        made: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(made.set_result, 3)
        return made

    def panics(params: Any, caller: Any) -> Any:
        raise Panic("as the extension does")

    bounds = {
        "direct": BoundMethod(lambda params, caller: 1, encode, False, "direct"),
        "fails": BoundMethod(fails, encode, False, "fails"),
        "waits": BoundMethod(lambda params, caller: waits(False), encode, True, "waits"),
        "waits_and_fails": BoundMethod(lambda params, caller: waits(True), encode, True, "waits_and_fails"),
        "at_once": BoundMethod(lambda params, caller: 4, encode, True, "at_once"),
        "future": BoundMethod(future, encode, True, "future"),
        "panics": BoundMethod(panics, encode, False, "panics"),
        "closed": BoundMethod(fails, encode, False, ""),
    }
    return MethodTable.of(bounds)


async def answer(dispatcher: Dispatcher, name: str) -> Any:
    reply: Reply = dispatcher.handle(b'{"id":1,"method":"%b","params":[]}' % name.encode())
    if isinstance(reply, PendingReply):
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        reply.deliver = done.set_result
        reply = await done
    assert isinstance(reply, bytes)
    return json.loads(reply)


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("direct", 1),
        ("waits", 2),
        ("future", 3),
        ("at_once", 4),
        ("fails", None),
        ("panics", None),
        ("waits_and_fails", None),
    ],
)
def test_every_kind_of_call_is_answered_as_before_and_measured(name: str, result: int | None) -> None:
    registry = MetricsRegistry()
    metrics = RequestMetrics(registry)

    async def story() -> None:
        dispatcher = Dispatcher(metrics.measured(table()), asyncio.get_running_loop())
        for _ in range(30):
            assert (await answer(dispatcher, name)).get("result") == result

    asyncio.run(story())
    durations = metrics.times.values[(name,)]
    assert sum(durations.counts) == 30
    assert durations.total > 0
    assert metrics.errors.values == ({} if result else {(name, "-32603"): 30})


def test_of_names_that_are_not_offered_errors_are_counted() -> None:
    metrics = RequestMetrics(MetricsRegistry())

    async def story() -> None:
        dispatcher = Dispatcher(metrics.measured(table()), asyncio.get_running_loop())
        assert (await answer(dispatcher, "closed"))["error"]["code"] == -32603

    asyncio.run(story())
    assert metrics.errors.values == {("closed", "-32603"): 1}
    assert metrics.times.values == {}


def test_unknown_method_names_are_counted_under_one_label() -> None:
    """Method names of clients do not become labels, because the number of names is unbounded."""
    metrics = RequestMetrics(MetricsRegistry())

    async def story() -> None:
        measured = metrics.measured(table())
        for offered in (measured, measured.map(lambda name, bound: bound)):
            dispatcher = Dispatcher(offered, asyncio.get_running_loop())
            for name in ("eth_nothing", "eth_nobody", "", "x" * 5000):
                assert (await answer(dispatcher, name))["error"]["code"] == -32601
            batch = dispatcher.handle(b'[{"id":1,"method":"eth_never","params":[]},{"id":2,"method":"direct"}]')
            assert isinstance(batch, bytes)
            assert json.loads(batch)[0]["error"]["code"] == -32601

    asyncio.run(story())
    assert metrics.errors.values == {("unknown", "-32601"): 10}
