"""Tests the memory of long answers: which requests wait, and when memory is released."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable

import pytest

from ophion.graphql.limits import GraphqlLimits
from ophion.graphql.response_buffer import ResponseBuffer
from ophion.native.graphql import GraphqlText
from ophion.runtime.thread_pools import LaneFull
from tests.unit.graphql.client import JSON_TYPE, Client, original_chain

LONG = "{blocks(from:0){" + " ".join(f"b{at}:logsBloom" for at in range(100)) + "}}"
"""A query with an answer of 1.7 megabytes. Such an answer takes more than one step."""


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 10))  # type: ignore[arg-type]  # `test` returns a coroutine


def room(max_bytes: int = 100, most_answer_bytes: int = 40, most_running: int = 2) -> ResponseBuffer:
    return ResponseBuffer(asyncio.get_running_loop(), max_bytes, most_answer_bytes, most_running)


def long_text(client: Client) -> GraphqlText:
    query = client.application._engine.read_parts(LONG, None, None)
    assert not isinstance(query, bytes)
    queries = client.rpc.context.queries
    result = query.run(queries.store, queries.head_hash, queries.head_number, False, 30.0)
    assert isinstance(result, tuple)
    assert isinstance(result[1], GraphqlText)
    return result[1]


def test_an_answer_in_the_making_counts_as_the_longest_possible() -> None:
    async def test() -> None:
        shared = room()
        await shared.enter()
        await shared.enter()
        assert (shared.running, shared.held_bytes) == (2, 80)
        third = asyncio.ensure_future(shared.enter())
        await asyncio.sleep(0)
        assert not third.done()
        shared.leave(None)
        await third
        assert (shared.running, shared.held_bytes) == (2, 80)

    run(test)


def test_those_who_wait_come_in_their_order_and_may_go_away() -> None:
    async def test() -> None:
        shared, entered = room(most_running=1), []

        async def enter(name: str) -> None:
            await shared.enter()
            entered.append(name)

        await shared.enter()
        tasks = [asyncio.ensure_future(enter(name)) for name in "abc"]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.sleep(0)
        shared.leave(None)
        await asyncio.sleep(0)
        shared.leave(None)
        await tasks[2]
        assert entered == ["b", "c"]

    run(test)


def test_a_turn_that_comes_too_late_is_given_on() -> None:
    async def test() -> None:
        shared = room(most_running=1)
        await shared.enter()
        first, second = (asyncio.ensure_future(shared.enter()) for _ in range(2))
        await asyncio.sleep(0)
        shared.leave(None)
        first.cancel()
        await second
        assert shared.running == 1

    run(test)


def test_too_many_waiting_are_refused() -> None:
    async def test() -> None:
        shared = room(most_running=1)
        await shared.enter()
        tasks = [asyncio.ensure_future(shared.enter()) for _ in range(1024)]
        await asyncio.sleep(0)
        with pytest.raises(LaneFull):
            await shared.enter()
        for task in tasks:
            task.cancel()

    run(test)


def test_an_answer_counts_until_nothing_refers_to_it(client: Client) -> None:
    text = long_text(client)
    size = len(text)

    async def test() -> None:
        nonlocal text
        shared = room(2 * size, size, 1)
        await shared.enter()
        shared.leave(text)
        assert shared.held_bytes == size
        view = text.view()
        del text
        await asyncio.sleep(0)
        assert shared.held_bytes == size, "a view keeps the answer"
        assert json.loads(bytes(view))["data"]["blocks"][0]["b0"] == "0x" + "0" * 512
        del view
        await asyncio.sleep(0)
        assert shared.held_bytes == 0

    run(test)


def test_answers_wait_for_memory_that_clients_hold(tmp_path_factory: pytest.TempPathFactory) -> None:
    size = 2_000_000
    limits = GraphqlLimits(max_answer_bytes=size, max_held_bytes=2 * size)
    with original_chain(tmp_path_factory.mktemp("held"), limits) as client:
        body = json.dumps({"query": LONG}).encode()
        shared = client.application._buffer
        held = client.respond(b"POST", headers={b"content-type": JSON_TYPE}, body=body)
        assert (held.status, shared.running) == (200, 0)
        assert 1_500_000 < shared.held_bytes < size
        other = client.respond(b"POST", headers={b"content-type": JSON_TYPE}, body=body)
        assert other.status == 200
        assert shared.held_bytes > 2 * 1_500_000

        async def third() -> None:
            nonlocal held
            waiting = asyncio.ensure_future(shared.enter())
            await asyncio.sleep(0)
            assert not waiting.done(), "two clients have not taken theirs"
            del held
            gc.collect()
            await waiting
            shared.leave(None)

        client.rpc.run(third())
