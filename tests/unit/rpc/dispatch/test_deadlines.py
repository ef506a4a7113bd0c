"""Tests timeouts of waiting requests, and finished requests."""

from __future__ import annotations

import asyncio
import json

from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.transport.replies import Complete, PendingReply
from tests.unit.rpc.envelopes import error, read, request, run
from tests.unit.rpc.wire import Context


def test_a_wait_that_takes_too_long_is_given_up_with_408() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        reply = dispatch.handle(b'{"id":1,"method":"eth_wait","params":[]}')
        assert isinstance(reply, PendingReply)
        answer = asyncio.get_running_loop().create_future()
        reply.deliver = answer.set_result
        status, text = read(await asyncio.wait_for(answer, 5))
        assert (status, text) == (408, error(-32603, "Timeout expired", None))

    run(main, timeout_s=0.01)


def test_a_method_without_timeout_waits_as_long_as_it_takes() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        pending: PendingReply[Complete] = PendingReply()
        pending.has_timeout = False
        dispatch._deadlines.watch(pending)
        assert not dispatch._deadlines._waiting

    run(main)


def test_nothing_is_kept_of_a_wait_that_is_over() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        single, batch = json.dumps(request("eth_wait")).encode(), json.dumps([request("eth_wait")]).encode()
        for body in (single, batch):
            answered, given_up = dispatch.handle(body), dispatch.handle(body)
            assert isinstance(answered, PendingReply)
            assert isinstance(given_up, PendingReply)
            assert len(dispatch._deadlines._waiting) == 2
            given_up.abandon()
            assert len(dispatch._deadlines._waiting) == 1
            answered.resolve(b"")
            assert len(dispatch._deadlines._waiting) == 0

    run(main)
