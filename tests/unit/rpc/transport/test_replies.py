"""Tests immediate and later answers."""

from __future__ import annotations

import asyncio
import json

from ophion.errors import RpcError
from ophion.rpc.errors import failure
from ophion.rpc.transport.replies import Answer, Complete, PendingReply, whole
from ophion.rpc.transport.streaming import StreamedAnswer, StreamedResult, StreamLimit
from ophion.runtime.thread_pools import InlineLane


class Rest:
    """A source that yields the rest of a result, then ends."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self._pieces = list(pieces)

    def next(self) -> bytes | None:
        piece = self._pieces.pop(0) if self._pieces else None
        if isinstance(piece, Exception):
            raise piece
        return piece

    def close(self) -> None:
        """Do nothing."""


def put_together(*pieces: bytes | Exception, most: int = 100) -> Complete:
    async def main() -> Complete:
        streamed = StreamedResult(b"[1", Rest(*pieces), InlineLane("trace"), StreamLimit(max_bytes=most))
        pending = whole(StreamedAnswer(b"7", b'{"id":7,"result":', streamed, b"}"))
        done: asyncio.Future[Complete] = asyncio.get_running_loop().create_future()
        pending.deliver = done.set_result
        return await done

    return asyncio.run(main())


def test_parts_are_joined_in_order() -> None:
    assert Answer(200, (b"a", b"", b"b")).join() == b"ab"


def test_a_reply_is_handed_over_once() -> None:
    replies: list[object] = []
    pending = PendingReply(lambda: replies.append("given up"))
    pending.deliver, pending.forget = replies.append, lambda over: replies.append("over")
    pending.resolve(b"1")
    pending.resolve(b"2")
    assert replies == ["over", b"1"]


def test_what_was_given_up_is_not_handed_over() -> None:
    replies: list[object] = []
    pending = PendingReply(lambda: replies.append("given up"))
    pending.deliver = replies.append
    pending.abandon()
    pending.resolve(b"1")
    assert replies == ["given up"]


def test_an_error_has_data_only_where_there_is_some() -> None:
    assert json.loads(failure(b"1", RpcError(-1, "no")))["error"] == {"code": -1, "message": "no"}
    assert json.loads(failure(b"1", RpcError(-1, "no", "why")))["error"]["data"] == "why"


def test_a_streamed_answer_can_be_put_together() -> None:
    assert put_together(b",2]") == b'{"id":7,"result":[1,2]}'


def test_what_cannot_be_put_together_is_an_error_under_its_id() -> None:
    for reply, code in ((put_together(b",2]", most=3), -32005), (put_together(ValueError("a bug")), -32603)):
        assert isinstance(reply, bytes)
        assert (json.loads(reply)["id"], json.loads(reply)["error"]["code"]) == (7, code)
