"""Tests streamed answers: pieces, backpressure, and all kinds of ends."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ophion.errors import OphionError, RpcError
from ophion.rpc.dispatch.batches import Batch
from ophion.rpc.transport.replies import PendingReply, Reply
from ophion.rpc.transport.streaming import (
    AnswerWriter,
    StreamedAnswer,
    StreamedResult,
    StreamLimit,
    chunk,
    collected,
    fragments,
    opened,
    whole_of,
)
from ophion.runtime.fair_scheduler import FairScheduler
from ophion.runtime.thread_pools import InlineLane
from tests.unit.rpc.interface import Interface

LANE = InlineLane("trace")


class Pieces:
    """A source with given pieces. An exception among the pieces is raised at its position."""

    def __init__(self, *pieces: bytes | Exception) -> None:
        self._pieces = list(pieces)
        self.is_closed = False

    def next(self) -> bytes | None:
        if not self._pieces:
            return None
        piece = self._pieces.pop(0)
        if isinstance(piece, Exception):
            raise piece
        return piece

    @property
    def left(self) -> int:
        return len(self._pieces)

    def close(self) -> None:
        self.is_closed = True


class Wire(asyncio.Transport):
    """A transport that records its output."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_aborted = False

    def writelines(self, list_of_data: Any) -> None:
        self.written.append(b"".join(list_of_data))

    def abort(self) -> None:
        self.is_aborted = True


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


def answer(source: Pieces, streams: StreamLimit | None = None) -> StreamedAnswer:
    return StreamedAnswer(b"1", b'{"result":', StreamedResult(b"[1", source, LANE, streams or StreamLimit()), b"}")


def test_a_short_result_is_plain_bytes_and_a_long_one_is_a_stream() -> None:
    async def story() -> None:
        assert await opened(LANE, StreamLimit(), lambda: Pieces(b"[]")) == b"[]"
        assert await opened(LANE, StreamLimit(), Pieces) == b""
        long = await opened(LANE, StreamLimit(), lambda: Pieces(b"[1", b",2", b"]"))
        assert isinstance(long, StreamedResult)
        assert await whole_of(long) == b"[1,2]"

    run(story)


def test_an_error_before_the_first_piece_is_an_error_of_the_request() -> None:
    async def story() -> None:
        with pytest.raises(OphionError):
            await opened(LANE, StreamLimit(), lambda: Pieces(OphionError("no")))

    run(story)


def test_the_pieces_leave_as_chunks_of_http() -> None:
    async def story() -> None:
        wire, done = Wire(), asyncio.Event()
        source = Pieces(b",2]")
        AnswerWriter(wire, answer(source), chunk, done.set)
        await asyncio.wait_for(done.wait(), 1)
        assert wire.written == [b'c\r\n{"result":[1\r\n', b"3\r\n,2]\r\n", b"1\r\n}\r\n0\r\n\r\n"]
        assert source.is_closed

    run(story)


def test_an_empty_end_is_the_end_of_a_chunked_body_and_no_more() -> None:
    assert b"".join(chunk(b"", True)) == b"0\r\n\r\n"


def test_the_pieces_leave_as_fragments_of_one_message() -> None:
    frame = fragments()
    assert frame(b"a" * 5, False) == (b"\x01\x05", b"aaaaa")
    assert frame(b"b" * 300, False) == (b"\x00\x7e\x01\x2c", b"b" * 300)
    assert frame(b"c" * 70_000, True)[0] == b"\x80\x7f" + (70_000).to_bytes(8, "big")


def test_nothing_is_asked_for_while_the_socket_is_full() -> None:
    async def story() -> None:
        wire, done = Wire(), asyncio.Event()
        pump = AnswerWriter(wire, answer(Pieces(b",2]")), chunk, done.set)
        pump.pause()
        await asyncio.sleep(0.01)
        assert len(wire.written) == 1
        pump.resume()
        await asyncio.wait_for(done.wait(), 1)
        assert len(wire.written) == 3

    run(story)


def test_a_stream_that_reads_ahead_produces_one_piece_while_the_socket_is_full() -> None:
    class FullAfterTwo(Wire):
        def writelines(self, list_of_data: Any) -> None:
            super().writelines(list_of_data)
            if len(self.written) == 2:
                pump.pause()
                full.set()

    async def story() -> None:
        nonlocal pump, full
        wire, done, full = FullAfterTwo(), asyncio.Event(), asyncio.Event()
        source = Pieces(b",2", b",3", b",4]")
        result = StreamedResult(b"[1", source, LANE, StreamLimit(), reads_ahead=True)
        pump = AnswerWriter(wire, StreamedAnswer(b"1", b"", result, b"}"), chunk, done.set)
        await asyncio.wait_for(full.wait(), 1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert (len(wire.written), source.left) == (2, 1)
        pump.resume()
        await asyncio.wait_for(done.wait(), 1)
        assert b"".join(wire.written) == b"2\r\n[1\r\n2\r\n,2\r\n2\r\n,3\r\n3\r\n,4]\r\n1\r\n}\r\n0\r\n\r\n"
        assert source.is_closed

    pump: AnswerWriter
    full: asyncio.Event
    run(story)


def test_an_error_ahead_cuts_the_connection_off_after_the_pieces_before_it() -> None:
    async def story() -> None:
        wire, source = Wire(), Pieces(b",2", OphionError("late"))
        result = StreamedResult(b"[1", source, LANE, StreamLimit(), reads_ahead=True)
        AnswerWriter(wire, StreamedAnswer(b"1", b"", result, b"}"), chunk, lambda: None)
        await asyncio.sleep(0.01)
        assert wire.written == [b"2\r\n[1\r\n", b"2\r\n,2\r\n"]
        assert wire.is_aborted
        assert source.is_closed

    run(story)


def test_closing_a_stream_that_reads_ahead_drops_the_piece_ahead() -> None:
    async def story() -> None:
        source, streams = Pieces(b",2", OphionError("late")), StreamLimit()
        result = StreamedResult(b"[1", source, LANE, streams, reads_ahead=True)
        assert await result.next() == b",2"
        result.close()
        assert source.is_closed
        assert streams.open == 0

    run(story)


def test_an_error_in_the_middle_cuts_the_connection_off() -> None:
    async def story() -> None:
        wire, source = Wire(), Pieces(OphionError("late"))
        AnswerWriter(wire, answer(source), chunk, lambda: None)
        await asyncio.sleep(0.01)
        assert wire.is_aborted
        assert source.is_closed

    run(story)


def test_the_work_stops_when_the_client_is_gone() -> None:
    async def story() -> None:
        source, streams = Pieces(b",2]"), StreamLimit()
        pump = AnswerWriter(Wire(), answer(source, streams), chunk, lambda: None)
        assert streams.open == 1
        pump.abandon()
        assert source.is_closed
        assert streams.open == 0

    run(story)


class Body:
    """Pieces without end, of which a test can know whether they still exist."""

    def __init__(self) -> None:
        self.first = b"1"
        self.weight = 0
        self.max_bytes = 0

    async def next(self) -> bytes | None:
        await asyncio.sleep(0)
        return b"1"

    def close(self) -> None:
        pass


@pytest.mark.parametrize("is_paused", [True, False])
def test_an_abandoned_answer_is_released_without_garbage_collection(is_paused: bool) -> None:
    async def story() -> None:
        body = Body()
        left = weakref.ref(body)
        pump = AnswerWriter(Wire(), StreamedAnswer(b"1", b"", body, b""), chunk, lambda: None)
        del body
        if is_paused:
            pump.pause()
        await asyncio.sleep(0.01)
        pump.abandon()
        del pump
        await asyncio.sleep(0.01)
        assert left() is None

    gc.disable()
    try:
        run(story)
    finally:
        gc.enable()


def test_a_written_first_piece_is_not_held() -> None:
    async def story() -> None:
        body = Body()
        pump = AnswerWriter(Wire(), StreamedAnswer(b"1", b"", body, b""), chunk, lambda: None)
        pump.pause()
        await asyncio.sleep(0.01)
        assert body.first == b""
        pump.abandon()

    run(story)


def test_so_many_streams_and_no_more() -> None:
    streams = StreamLimit(1)
    first = StreamedResult(b"", Pieces(), LANE, streams)
    with pytest.raises(RpcError, match="Number of traces"):
        StreamedResult(b"", Pieces(), LANE, streams)
    first.close()
    first.close()
    assert streams.open == 0


def test_what_cannot_be_streamed_is_put_together_up_to_a_limit() -> None:
    async def story() -> None:
        assert await collected(answer(Pieces(b",2]"), StreamLimit(max_bytes=5))) == b'{"result":[1,2]}'
        with pytest.raises(RpcError, match="maximum RPC response size"):
            await collected(answer(Pieces(b",2]"), StreamLimit(max_bytes=4)))
        memory_changed: list[int] = []
        assert await collected(answer(Pieces(b",2", b",3]")), 7, memory_changed.append) == b'{"result":[1,2,3]}'
        assert memory_changed == [4, 7]
        streams = StreamLimit()
        with pytest.raises(RpcError, match="maximum RPC response size"):
            await collected(answer(Pieces(b",2", b",3]"), streams), 6)
        assert streams.open == 0

    run(story)


def test_a_long_trace_fits_into_a_batch(dev: Interface) -> None:
    """The trace of some thousand steps is longer than a chunk."""
    to = "0x" + "c1" * 20
    code = "0x" + "61ffff" + "5b6001900380600357" + "00"
    call = {"to": to, "gas": hex(200_000)}
    asked = {"method": "debug_traceCall", "params": [call, "latest", {"stateOverrides": {to: {"code": code}}}]}
    body = json.dumps([{"jsonrpc": "2.0", "id": number, **asked} for number in (1, 2)]).encode()
    first, second = dev.message(body)
    assert (first["id"], second["id"]) == (1, 2)
    assert first["result"] == second["result"]
    assert len(first["result"]["structLogs"]) > 40_000


def test_members_of_a_batch_are_put_together_one_at_a_time_and_within_its_limit() -> None:
    """The node renders the responses of a batch one at a time. Sixteen responses at once, each up to the size limit,
    would take a gigabyte.
    """
    begun: list[int] = []

    class Piece(Pieces):
        def __init__(self, number: int) -> None:
            super().__init__(b"," + b"9" * 100 + b"]")
            self._number = number

        def next(self) -> bytes | None:
            begun.append(self._number)
            return super().next()

    streams = StreamLimit()

    async def story() -> None:
        def request(position: int) -> Reply:
            return answer(Piece(position), streams)

        batch = Batch(request, lambda position: b"%d" % position, 8, FairScheduler(), 400)
        reply = batch.start()
        assert isinstance(reply, PendingReply)
        weights: list[int] = []
        reply.memory_changed = lambda: weights.append(reply.weight)
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        reply.deliver = done.set_result
        found = json.loads(await done)
        assert [("result" in one) for one in found] == [True] * 3 + [False] * 5
        assert begun == sorted(begun)
        assert max(weights) <= 400 + 110
        assert streams.open == 0

    run(story)


def test_what_waits_in_a_batch_is_closed_with_it() -> None:
    streams = StreamLimit()

    async def story() -> None:
        batch = Batch(lambda position: answer(Pieces(b"]"), streams), lambda position: b"1", 5, FairScheduler(), 400)
        reply = batch.start()
        assert isinstance(reply, PendingReply)
        assert streams.open == 5
        reply.abandon()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert streams.open == 0

    run(story)
