"""Tests order, sizes and waits of batches."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.transport.replies import PendingReply
from ophion.rpc.transport.streaming import StreamedAnswer, StreamedResult, StreamLimit, opened
from ophion.runtime.principal import SUBJECT
from ophion.runtime.thread_pools import ThreadLane
from tests.unit.rpc.envelopes import ask, error, read, request, run
from tests.unit.rpc.transport.test_streaming import Pieces
from tests.unit.rpc.wire import Context


def test_a_batch_is_answered_in_order_whatever_its_members_are() -> None:
    status, answers = ask([request("eth_blockNumber", id="1"), 5, request("eth_nonsense", id=2), []])
    assert status == 200
    assert [answer["id"] for answer in answers] == ["1", None, 2, None]
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32600, -32601, -32600]


def test_an_empty_batch_is_an_invalid_request() -> None:
    assert ask([]) == (400, error(-32600, "Invalid Request", None))


def test_notifications_are_left_out_of_a_batch() -> None:
    assert ask([{"method": "eth_blockNumber"}]) == (200, [])
    assert len(ask([{"method": "eth_blockNumber"}, request("eth_blockNumber")])[1]) == 1


def test_an_oversized_batch_is_refused_as_a_whole() -> None:
    batch = [request("eth_blockNumber")] * 3
    assert ask(batch, max_batch=2) == (200, error(-32005, "Number of requests exceeds max batch size", None))
    assert len(ask(batch, max_batch=3)[1]) == 3


def test_a_batch_waits_for_its_slowest_member_and_keeps_its_order() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        body = json.dumps([request("eth_wait", id=1), request("eth_blockNumber", id=2)]).encode()
        reply = dispatch.handle(body)
        assert isinstance(reply, PendingReply)
        answer = asyncio.get_running_loop().create_future()
        reply.deliver = answer.set_result
        assert context.gate is not None
        context.gate.set_result(1)
        _, answers = read(await answer)
        assert [one["id"] for one in answers] == [1, 2]

    run(main)


def test_a_batch_of_many_waits_runs_some_at_a_time_and_finishes() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        reply = dispatch.handle(json.dumps([request("eth_wait", id=n) for n in range(40)]).encode())
        assert isinstance(reply, PendingReply)
        answer = asyncio.get_running_loop().create_future()
        reply.deliver = answer.set_result
        while not answer.done():
            for task in asyncio.all_tasks():
                waiter = getattr(task, "_fut_waiter", None)
                if waiter is not None and not waiter.done() and waiter is not answer:
                    waiter.set_result(1)
            await asyncio.sleep(0)
        assert [one["result"] for one in read(answer.result())[1]] == ["0x2"] * 40

    run(main)


def test_a_batch_stops_where_its_answer_would_be_too_large() -> None:
    calls = [request("eth_blockNumber", id=number) for number in range(6)]
    status, answers = ask([*calls, {"method": "eth_blockNumber"}], max_response_bytes=100)
    assert status == 200
    assert [answer["id"] for answer in answers] == list(range(6))
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, None, -32005, -32005, -32005, -32005]


def test_requests_of_a_batch_run_as_the_client_in_every_time_slice() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        received: dict[str, set[str | None]] = {"ali": set(), "eve": set()}
        bound = dispatch._table["eth_blockNumber"]

        def invoke(params: Any, caller: Any) -> int:
            received[params[0]].add(SUBJECT.get())
            time.sleep(0.0005)  # make each request slow, so that the batch needs several time slices
            return 1

        dispatch._table = {"eth_blockNumber": bound._replace(invoke=invoke)}
        answers = []
        for name in received:
            before = SUBJECT.set(name)
            reply = dispatch.handle(json.dumps([request("eth_blockNumber", name, id=n) for n in range(60)]).encode())
            SUBJECT.reset(before)
            assert isinstance(reply, PendingReply)
            answer = asyncio.get_running_loop().create_future()
            reply.deliver = answer.set_result
            answers.append(answer)
        await asyncio.gather(*answers)
        assert received == {"ali": {"ali"}, "eve": {"eve"}}

    run(main)


def test_batches_of_many_clients_wait_for_a_full_lane() -> None:
    """Ten clients request ten traces each, in a lane (worker threads) that admits eight jobs.

    The node refuses no trace, and still admits a single trace.
    """

    async def main(dispatch: Dispatcher, context: Context) -> None:
        lane, gate, streams = ThreadLane("trace", 1, 8), threading.Event(), StreamLimit(4)

        def traced() -> Pieces:
            gate.wait(30)
            return Pieces(b'"0x', b"1", b'"')

        async def trace(params: Any, caller: Any) -> bytes | StreamedResult:
            return await opened(lane, streams, traced)

        bound = dispatch._table["eth_blockNumber"]
        dispatch._table = {
            "debug_trace": bound._replace(
                invoke=lambda *given: trace(*given), encode=lambda value: value, may_wait=True
            )
        }
        body = json.dumps([request("debug_trace", id=number) for number in range(10)]).encode()
        answers = []
        for message in [body] * 10 + [json.dumps(request("debug_trace")).encode()]:
            reply = dispatch.handle(message)
            assert isinstance(reply, PendingReply)
            answer = asyncio.get_running_loop().create_future()
            reply.deliver = answer.set_result
            answers.append(answer)
        await asyncio.sleep(0)
        assert lane.rejected == 0
        gate.set()
        *batches, single = await asyncio.gather(*answers)
        for batch in batches:
            assert [one.get("result", one) for one in read(batch)[1]] == ["0x1"] * 10
        assert isinstance(single, StreamedAnswer)
        single.body.close()
        assert (streams.open, lane.rejected) == (0, 0)
        lane.close()

    run(main)
