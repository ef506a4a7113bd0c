"""Tests that answers leave in the order of their requests."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Awaitable, Callable
from typing import Any

from ophion.rpc.transport.http.messages import Response
from ophion.rpc.transport.http.response_queue import ResponseQueue
from ophion.rpc.transport.replies import Answer, PendingReply
from ophion.rpc.transport.streaming import StreamedAnswer, StreamedResult, StreamLimit
from ophion.runtime.chunked_body import PORTION_BYTES
from ophion.runtime.fair_scheduler import FairScheduler
from ophion.runtime.thread_pools import InlineLane
from tests.unit.rpc.transport.test_replies import Rest
from tests.unit.rpc.wire import MemoryTransport


class Client:
    """A response queue and its output. The test calls `flush` at the same points as a connection."""

    def __init__(self) -> None:
        self.transport = MemoryTransport()
        self.answers = ResponseQueue(self.transport, InlineLane("pack"), lambda: None)


def pending() -> PendingReply:
    return PendingReply(lambda: None)


def streamed(*pieces: bytes, most: int = 100) -> StreamedAnswer:
    body = StreamedResult(b"[1", Rest(*pieces), InlineLane("trace"), StreamLimit(max_bytes=most))
    return StreamedAnswer(b"7", b'{"id":7,"result":', body, b"}")


def run(test: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        await test(Client())

    asyncio.run(main())


async def scheduler() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def bodies(written: bytes) -> list[bytes]:
    return [part.rpartition(b"\r\n\r\n")[2] for part in written.split(b"HTTP/1.1 ")[1:]]


def unpacked(written: bytes) -> bytes:
    """Return the decompressed body of one answer."""
    head, _, rest = written.partition(b"\r\n\r\n")
    assert b"\r\nContent-Encoding: gzip\r\n" in head + b"\r\n"
    assert b"\r\nTransfer-Encoding: chunked\r\n" in head + b"\r\n"
    body = b""
    while True:
        size, _, rest = rest.partition(b"\r\n")
        body, rest = body + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
        if not int(size, 16):
            assert not rest
            return gzip.decompress(body)


def test_long_answers_are_compressed_for_those_who_ask() -> None:
    long = b'["' + b"ab" * 100_000 + b'"]'

    async def story(client: Client) -> None:
        for result in (long, Answer(200, (long[:7], long[7:])), Response(200, (long[:70_000], long[70_000:]))):
            client.answers.add(result, takes_gzip=True)
            client.answers.flush()
            await scheduler()
            written = client.transport.take()
            assert len(written) < len(long) / 10
            assert unpacked(written) == long
            client.answers.add(result)
            client.answers.flush()
            assert client.transport.take().endswith(long)
        client.answers.add(b"[]", takes_gzip=True)
        client.answers.flush()
        assert client.transport.take().endswith(b"\r\n\r\n[]")

    run(story)


def test_streams_are_compressed_for_those_who_ask() -> None:
    async def story(client: Client) -> None:
        client.answers.add(streamed(b",2", b",3]"), takes_gzip=True)
        client.answers.flush()
        await scheduler()
        assert json.loads(unpacked(client.transport.take())) == {"id": 7, "result": [1, 2, 3]}
        assert not client.answers

    run(story)


def test_what_is_compressed_counts_until_it_has_left() -> None:
    async def story(client: Client) -> None:
        client.answers.add(b"x" * 300_000, takes_gzip=True)
        assert client.answers.weight >= 300_000
        client.answers.flush()
        assert client.answers.weight == 300_000
        assert not client.answers.accepts_more
        client.answers.pause()
        await scheduler()
        assert 0 < client.answers.weight < 300_000
        client.answers.resume()
        await scheduler()
        assert client.answers.weight == 0

    run(story)


def test_what_is_ready_waits_for_what_was_asked_before() -> None:
    async def story(client: Client) -> None:
        first, second = pending(), pending()
        client.answers.add(first)
        client.answers.add(b"[2]")
        client.answers.add(second)
        client.answers.put(b"HTTP/1.1 100 Continue\r\n\r\n")
        assert not client.answers.flush()
        assert len(client.answers) == 4
        second.resolve(b"[3]")
        assert client.transport.take() == b""
        first.resolve(b"[1]")
        await asyncio.sleep(0)
        assert bodies(client.transport.take()) == [b"[1]", b"[2]", b"[3]", b""]
        assert len(client.answers) == 0

    run(story)


def test_a_large_answer_behind_another_request_is_reported_before_the_next_iteration() -> None:
    async def story(client: Client) -> None:
        weights: list[int] = []
        answers = ResponseQueue(
            client.transport, InlineLane("pack"), lambda: None, lambda: weights.append(answers.weight)
        )
        first, small, large = pending(), pending(), pending()
        for one in (first, small, large):
            answers.add(one)
        small.resolve(b"1")
        assert weights == []
        large.resolve(b"x" * 100_000)
        assert len(weights) == 1
        assert weights[0] > 100_000

    run(story)


def test_many_small_requests_or_one_large_may_be_open() -> None:
    async def story(client: Client) -> None:
        for _ in range(31):
            client.answers.add(pending(), size=100)
        assert client.answers.accepts_more
        client.answers.add(pending(), size=100)
        assert not client.answers.accepts_more
        client.answers.abandon()
        client.answers.add(pending(), size=64 * 1024)
        assert not client.answers.accepts_more

    run(story)


def test_a_streamed_answer_is_written_in_chunks_and_the_next_one_waits() -> None:
    async def story(client: Client) -> None:
        client.answers.add(streamed(b",2]"))
        client.answers.add(b"[3]")
        client.answers.flush()
        assert client.answers.is_streaming
        await scheduler()
        assert not client.answers.is_streaming
        written = client.transport.take()
        assert b"Transfer-Encoding: chunked" in written
        assert written.endswith(b"[3]")

    run(story)


def test_clients_that_know_no_chunks_get_it_in_one_piece_or_an_error() -> None:
    async def story(client: Client) -> None:
        for most, found in ((100, {"id": 7, "result": [1, 2]}), (3, None)):
            client.answers.add(streamed(b",2]", most=most), keep_alive=False, is_old=True)
            await scheduler()
            client.answers.flush()
            (body,) = bodies(client.transport.take())
            answer = json.loads(body)
            assert answer == found or answer["error"]["code"] == -32005
        assert not client.transport.is_aborted

    run(story)


def test_work_for_a_disconnected_client_is_cancelled() -> None:
    async def story(client: Client) -> None:
        given_up: list[str] = []
        client.answers.add(PendingReply(lambda: given_up.append("first")))
        client.answers.add(Response(404))
        client.answers.add(PendingReply(lambda: given_up.append("second")))
        client.answers.abandon()
        assert given_up == ["first", "second"]
        assert len(client.answers) == 0

    run(story)


def test_what_is_answered_in_one_step_leaves_in_one_write() -> None:
    async def story(client: Client) -> None:
        waiting = [pending() for _ in range(3)]
        for one in waiting:
            client.answers.add(one)
        for number, one in enumerate(waiting):
            one.resolve(b"%d" % number)
        assert client.transport.take() == b""
        await asyncio.sleep(0)
        assert bodies(client.transport.take()) == [b"0", b"1", b"2"]
        assert len(client.answers) == 0

    run(story)


def test_long_answers_are_encrypted_in_portions() -> None:
    long = Answer(200, tuple(b"%06d," % number for number in range(100_000)))

    class Full(MemoryTransport):
        """A transport whose buffer is full after each write, as with encryption."""

        def writelines(self, list_of_data: Any) -> None:
            super().writelines(list_of_data)
            answers.pause()

    transport = Full()
    answers: ResponseQueue

    async def main() -> None:
        nonlocal answers
        answers = ResponseQueue(transport, InlineLane("pack"), lambda: None, scheduler=FairScheduler())
        for result in (long, b"[]", long.join(), long):
            answers.add(result)
        answers.flush()
        before, written = answers.weight, b""
        while answers:
            await scheduler()
            written += transport.written
            assert len(transport.take()) <= PORTION_BYTES + 100, "nobody has taken the one before"
            assert answers.weight <= before - len(written)
            answers.resume()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        whole = head % 700_000 + long.join()
        assert written == whole + head % 2 + b"[]" + whole + whole

    asyncio.run(main())


def test_what_is_ready_in_one_turn_is_one_record() -> None:
    class Records(MemoryTransport):
        def writelines(self, list_of_data: object) -> None:
            raise AssertionError("a record for each part")

    async def main() -> None:
        transport = Records()
        answers = ResponseQueue(transport, InlineLane("pack"), lambda: None, scheduler=FairScheduler())
        answers.add(b"[1]")
        answers.add(Answer(200, (b"[2", b"]")))
        answers.flush()
        assert bodies(transport.take()) == [b"[1]", b"[2]"]

    asyncio.run(main())


def test_a_head_request_gets_no_body() -> None:
    async def test(client: Client) -> None:
        later = pending()
        for result in (b"[1]", Answer(200, (b"[1", b"]")), Response(404, (b"[1]",)), later):
            client.answers.add(result, is_bare=True)
        client.answers.add(b"[2]")
        later.resolve(b"[1]")
        client.answers.flush()
        *heads, body = client.transport.take().split(b"\r\n\r\n")
        assert [b"Content-Length: 3" in head for head in heads] == [True] * 5
        assert body == b"[2]"

    run(test)


def test_a_stream_that_begins_behind_something_unread_waits_for_its_client() -> None:
    async def story(client: Client) -> None:
        later = pending()
        client.answers.add(Answer(200, (b"x" * 100_000,)))
        client.answers.add(later)
        client.answers.flush()
        client.answers.pause()
        later.resolve(streamed(*[b",2"] * 100, b"]", most=1000))
        await scheduler()
        assert client.transport.take().count(b",2") == 0
        client.answers.resume()
        await scheduler()
        assert client.transport.take().count(b",2") > 0

    run(story)
