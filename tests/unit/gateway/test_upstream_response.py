"""Tests the parsing of node responses in pieces of any size."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.gateway.error_responses import IncompleteResponse
from ophion.gateway.upstream_response import WHOLE_BYTES, StreamedBody, UpstreamResponseReader
from ophion.rpc.transport.http.messages import Response, chunked_head
from ophion.rpc.transport.streaming import StreamedAnswer, chunk


class Flow:
    """The client side of a response."""

    def __init__(self) -> None:
        self.is_paused = False
        self.is_given_up = False
        self.delivered: list[Any] = []

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False

    def give_up(self) -> None:
        self.is_given_up = True

    def reader(self) -> UpstreamResponseReader:
        return UpstreamResponseReader(self, self.delivered.append, self.give_up)


WHOLE = b'HTTP/1.1 404 Nope\r\nContent-Type: text/plain\r\nETag: "1"\r\nContent-Length: 5\r\n\r\nhello'
CHUNKED = (
    b'HTTP/1.1 404 Nope\r\nContent-Type: text/plain\r\nETag: "1"\r\nTransfer-Encoding: chunked\r\n\r\n'
    b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
)
EXPECTED = Response(404, (b"hello",), b"text/plain", b'etag: "1"\r\n', b"Nope")


@pytest.mark.parametrize("message", [WHOLE, CHUNKED])
@given(cuts=st.lists(st.integers(1, 100), max_size=6))
def test_it_does_not_matter_how_an_answer_is_cut(message: bytes, cuts: list[int]) -> None:
    flow = Flow()
    reader = flow.reader()
    places = sorted({min(cut, len(message)) for cut in cuts} | {len(message)})
    for start, end in zip([0, *places], places, strict=False):
        assert reader.feed(message[start:end])
    assert flow.delivered == [EXPECTED]
    assert reader.is_whole
    assert reader.keeps_alive


@given(st.binary(max_size=400))
def test_anything_else_is_refused_or_waited_for(data: bytes) -> None:
    flow = Flow()
    reader = flow.reader()
    assert reader.feed(data) in (True, False)
    assert not flow.delivered or isinstance(flow.delivered[0], Response)


def test_an_endless_head_is_no_answer() -> None:
    reader = Flow().reader()
    assert not all(reader.feed(piece) for piece in (b"HTTP/1.1 200 OK\r\nX: ", *[b"y" * 1000] * 100))


def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    flow = Flow()
    reader = flow.reader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nall")
    assert not flow.delivered
    assert reader.end()
    assert flow.delivered == [Response(200, (b"all",), None, b"", b"OK")]
    assert not reader.keeps_alive


def test_an_answer_that_breaks_off_is_none() -> None:
    flow = Flow()
    reader = flow.reader()
    assert reader.feed(WHOLE[:-1])
    assert not reader.end()
    assert not flow.delivered


def test_a_word_in_between_is_not_the_answer() -> None:
    flow = Flow()
    assert flow.reader().feed(b"HTTP/1.1 100 Continue\r\n\r\n" + WHOLE)
    assert flow.delivered == [EXPECTED]


def test_a_long_answer_is_read_as_fast_as_it_is_taken() -> None:
    async def play() -> None:
        flow, piece = Flow(), b"x" * 64 * 1024
        reader = flow.reader()
        reader.feed(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (64 * 1024 * 8)
        )
        taken = 0
        while not flow.is_paused:
            assert reader.feed(piece)
            taken += len(piece)
        assert taken <= WHOLE_BYTES + 4 * len(piece)
        (answer,) = flow.delivered
        assert isinstance(answer, StreamedAnswer)
        body = answer.body
        got = len(body.first)
        while got < taken:
            got += len(await body.next() or b"")
        assert not flow.is_paused
        while taken < 64 * 1024 * 8:
            assert reader.feed(piece)
            taken += len(piece)
        assert reader.is_whole
        assert not flow.is_paused, "the connection serves others while the client still reads"
        while (more := await body.next()) is not None:
            got += len(more)
        assert got == taken
        body.close()
        assert not flow.is_given_up

    asyncio.run(play())


def test_who_does_not_want_the_rest_stops_it() -> None:
    async def play() -> None:
        flow = Flow()
        body = StreamedBody(b"first", flow, flow.give_up)
        body.close()
        assert flow.is_given_up

    asyncio.run(play())


def test_a_node_that_disconnects_is_reported_to_the_reader() -> None:
    async def play() -> None:
        flow = Flow()
        body = StreamedBody(b"first", flow, flow.give_up)
        body.add(b"second")
        body.end(IncompleteResponse("gone"))
        assert await body.next() == b"second"
        with pytest.raises(IncompleteResponse):
            await body.next()

    asyncio.run(play())


def test_the_shape_of_a_long_answer_is_kept() -> None:
    shape = Response(206, (), b"text/css", b"etag: 1\r\n", b"Part")
    assert chunked_head(b"", True, shape) == (
        b"HTTP/1.1 206 Part\r\nContent-Type: text/css\r\nTransfer-Encoding: chunked\r\netag: 1\r\n\r\n"
    )
    assert b"".join(chunk(b"", True)) == b"0\r\n\r\n"
