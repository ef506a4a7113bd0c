"""Replies to raw transactions: the fast path gives the same answers as the handler.

A request with a number as id takes the fast path; a request with a text as id takes the slow path.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.metrics.requests import RequestMetrics
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.dispatch.fast_path import RawTransactionReply
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.endpoints.services import method_table
from ophion.rpc.schema.registry import HTTP
from ophion.rpc.transport.replies import Answer, Reply
from ophion.runtime.metrics_registry import MetricsRegistry
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import GROUPS, Interface, open_interface

RAWS = [legacy_transaction(DEV_KEYS[0], nonce) for nonce in range(4)]
ENDED = "decoding has ended"


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Interface]:
    with open_interface(tmp_path) as interface:
        yield interface


def text(raw: bytes, id: int | str = 1) -> bytes:
    return json.dumps({"id": id, "method": "eth_sendRawTransaction", "params": ["0x" + raw.hex()]}).encode()


async def turns() -> None:
    """Run some iterations of the event loop."""
    for _ in range(10):
        await asyncio.sleep(0)


def sent(reply: Reply) -> RawTransactionReply:
    assert type(reply) is RawTransactionReply
    return reply


def test_both_ways_say_the_same(dev: Interface) -> None:
    bad = [b"", b"\x01", RAWS[0][:-1], legacy_transaction(DEV_KEYS[0], 0, gas=20_000)]
    refused = [legacy_transaction(DEV_KEYS[0], 0, chain_id=7), legacy_transaction(DEV_KEYS[2], 5, value=10**30)]
    for raw in (*bad, *refused):
        usual, general = (dev.message(text(raw, id)) for id in (1, "1"))
        assert usual.pop("id") == 1
        assert general.pop("id") == "1"
        assert usual == general
        assert "error" in usual
    first = dev.message(text(RAWS[0]))["result"]
    assert dev.message(text(RAWS[1], "1"))["result"] != first
    for raw in RAWS[:2]:
        assert {dev.message(text(raw, id))["error"]["message"] for id in (1, "1")} == {"Known transaction"}
    assert len(dev.node.pool) == 2


def test_replies_of_one_step_are_delivered_in_order(dev: Interface) -> None:
    async def story() -> list[Any]:
        replies: list[Any] = []
        for number, raw in enumerate(RAWS):
            sent(dev.dispatcher.handle(text(raw, number))).deliver = replies.append
        await turns()
        return [json.loads(one) for one in replies]

    answers = dev.run(story())
    assert [answer["id"] for answer in answers] == [0, 1, 2, 3]
    assert all(len(answer["result"]) == 66 for answer in answers)


def test_a_transaction_of_a_disconnected_or_late_client_is_still_sent(dev: Interface) -> None:
    async def story() -> list[Any]:
        limits = DispatchLimits(timeout_s=0)
        short = Dispatcher(method_table(dev.context, GROUPS, HTTP), dev.loop, limits)
        replies: list[Any] = []
        sent(dev.dispatcher.handle(text(RAWS[0]))).abandon()
        late = sent(short.handle(text(RAWS[1])))
        late.deliver = replies.append
        await turns()
        late.fail(ValueError("nobody is told twice"))
        return replies

    (answer,) = dev.run(story())
    assert isinstance(answer, bytes | Answer)
    assert len(dev.node.pool) == 2


def test_a_failed_delivery_does_not_stop_other_deliveries(dev: Interface, caplog: pytest.LogCaptureFixture) -> None:
    def breaks(reply: object) -> None:
        raise OSError("gone")

    async def story() -> list[Any]:
        replies: list[Any] = []
        sent(dev.dispatcher.handle(text(RAWS[0]))).deliver = breaks
        sent(dev.dispatcher.handle(text(RAWS[1]))).deliver = replies.append
        await turns()
        return replies

    (answer,) = dev.run(story())
    assert "result" in json.loads(answer)
    assert "caller failed to process its result" in caplog.text


def test_a_node_that_closes_says_so(dev: Interface, monkeypatch: pytest.MonkeyPatch) -> None:
    def submit(arrival: object, raws: object) -> None:
        raise RuntimeError(ENDED)

    monkeypatch.setattr(dev.node.pool._intake._decoding, "submit", submit)
    usual, general = (dev.message(text(RAWS[0], id))["error"] for id in (1, "1"))
    assert usual == general == {"code": -32603, "message": "Internal error"}


def test_they_are_measured_to_their_end(dev: Interface) -> None:
    metrics = RequestMetrics(MetricsRegistry())
    dispatcher = Dispatcher(metrics.measured(method_table(dev.context, GROUPS, HTTP)), dev.loop)
    for raw in (RAWS[0], RAWS[0], RAWS[1]):
        dev.message(text(raw), dispatcher)
    times = metrics.times.of("eth_sendRawTransaction")
    assert sum(times.counts) == 3
    assert times.total > 0
    assert metrics.errors.values == {("eth_sendRawTransaction", "-32000"): 1}
    dev.message(text(RAWS[0], "in the handler's way"), dispatcher)
    dev.message(b"[%b,%b]" % (text(RAWS[1]), text(RAWS[2])), dispatcher)
    assert sum(times.counts) == 6
    assert metrics.errors.values == {("eth_sendRawTransaction", "-32000"): 3}
