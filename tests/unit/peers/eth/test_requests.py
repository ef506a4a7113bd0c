"""Tests requests and their responses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.field_decoding import enclosed
from ophion.peers.eth.messages import Code, GetHeaders
from ophion.peers.eth.requests import MAX_OPEN, RequestFailed, Requests, RequestTimedOut
from ophion.runtime.clock import ManualClock
from ophion.testing.virtual_loop import run_virtually


class Line:
    """A peer that records requests and sends no responses."""

    def __init__(self) -> None:
        self.sent: list[tuple[Code, bytes]] = []
        self.is_open = True

    def send(self, code: Code, payload: bytes) -> bool:
        self.sent.append((code, payload))
        return self.is_open


def run_requests(scenario: Callable[[Requests, Line], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        line = Line()
        await scenario(Requests(line.send), line)

    run_virtually(run(), ManualClock())


def ask(requests: Requests, code: Code = Code.GET_BLOCK_HEADERS) -> asyncio.Task[bytes]:
    return asyncio.ensure_future(requests.ask(code, GetHeaders(1, 1).encode))


def test_responses_match_their_requests_in_any_order() -> None:
    async def scenario(requests: Requests, line: Line) -> None:
        first, second = ask(requests), ask(requests)
        await asyncio.sleep(0)
        assert [payload[1] for _, payload in line.sent] == [1, 2]
        requests.answered(Code.BLOCK_HEADERS, enclosed(2, b"\xc1\x02"))
        requests.answered(Code.BLOCK_HEADERS, enclosed(1, b"\xc1\x01"))
        assert await first == b"\xc1\x01"
        assert await second == b"\xc1\x02"
        assert len(requests) == 0

    run_requests(scenario)


def test_an_unsolicited_response_is_a_breach() -> None:
    async def scenario(requests: Requests, line: Line) -> None:
        for code, number in ((Code.BLOCK_HEADERS, 1), (Code.BLOCK_BODIES, 7)):
            with pytest.raises(PeerMisbehaved, match="unsolicited") as caught:
                requests.answered(code, enclosed(number, b"\xc0"))
            assert caught.value.reason is DisconnectReason.BREACH
        waiting = ask(requests)
        await asyncio.sleep(0)
        with pytest.raises(PeerMisbehaved):
            requests.answered(Code.BLOCK_BODIES, enclosed(1, b"\xc0"))
        requests.answered(Code.BLOCK_HEADERS, enclosed(1, b"\xc0"))
        with pytest.raises(PeerMisbehaved):
            requests.answered(Code.BLOCK_HEADERS, enclosed(1, b"\xc0"))
        await waiting

    run_requests(scenario)


def test_a_late_response_is_ignored_once() -> None:
    async def scenario(requests: Requests, line: Line) -> None:
        with pytest.raises(RequestTimedOut):
            await ask(requests)
        requests.answered(Code.BLOCK_HEADERS, enclosed(1, b"\xc0"))
        with pytest.raises(PeerMisbehaved):
            requests.answered(Code.BLOCK_HEADERS, enclosed(1, b"\xc0"))

    run_requests(scenario)


def test_the_sixth_request_waits_for_a_free_slot() -> None:
    async def scenario(requests: Requests, line: Line) -> None:
        tasks = [ask(requests) for _ in range(MAX_OPEN + 1)]
        await asyncio.sleep(0)
        assert (len(line.sent), requests.waiting) == (MAX_OPEN, 1)
        requests.answered(Code.BLOCK_HEADERS, enclosed(3, b"\xc0"))
        await asyncio.sleep(0.001)
        assert (len(line.sent), requests.waiting) == (MAX_OPEN + 1, 0)
        requests.close()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(one, RequestFailed) for one in done] == [True, True, False, True, True, True]

    run_requests(scenario)


def test_requests_fail_when_the_peer_disconnects() -> None:
    async def scenario(requests: Requests, line: Line) -> None:
        line.is_open = False
        with pytest.raises(RequestFailed, match="disconnected"):
            await ask(requests)
        requests.close()
        with pytest.raises(RequestFailed, match="disconnected"):
            await ask(requests)

    run_requests(scenario)


def test_a_cancelled_request_is_closed() -> None:
    async def scenario(requests: Requests, line: Line) -> None:
        task = ask(requests)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert len(requests) == 0
        requests.answered(Code.BLOCK_HEADERS, enclosed(1, b"\xc0"))
        tasks = [ask(requests) for _ in range(MAX_OPEN + 1)]
        await asyncio.sleep(0)
        tasks[-1].cancel()
        await asyncio.gather(tasks[-1], return_exceptions=True)
        assert (len(requests), requests.waiting) == (MAX_OPEN, 0)
        requests.close()
        await asyncio.gather(*tasks, return_exceptions=True)

    run_requests(scenario)


def test_a_cancelled_request_without_a_response_counts_as_timed_out() -> None:
    async def run() -> None:
        line, timed_out = Line(), [0]

        def count() -> None:
            timed_out[0] += 1

        requests = Requests(line.send, cancelled_timed_out=count)
        for number, is_answered in ((1, True), (2, False)):
            asked = ask(requests)
            await asyncio.sleep(0.5)
            asked.cancel()
            await asyncio.sleep(1)
            if is_answered:
                requests.answered(Code.BLOCK_HEADERS, enclosed(number, b"\xc0"))
            await asyncio.sleep(10)
            assert timed_out == [0 if is_answered else 1]
        ask(requests).cancel()
        requests.close()
        await asyncio.sleep(10)
        assert timed_out == [1]

    run_virtually(run(), ManualClock())
