"""Requests of many callers at one address do not delay the request of another address."""

from __future__ import annotations

import asyncio
import threading

from ophion.enclave_http.unproven_work import SHORT_BYTES, UnprovenWork
from ophion.rpc.transport.http.messages import Request
from ophion.runtime.thread_pools import ThreadLane

LONG = bytes(SHORT_BYTES + 1)


def request(address: str, body: bytes = LONG) -> Request:
    return Request(b"POST", b"/push", b"", {}, body, address)


def test_addresses_take_turns() -> None:
    done: list[str] = []

    async def story() -> None:
        lane = ThreadLane("test", 1, None)
        gate = threading.Event()
        try:
            work = UnprovenWork(lane)
            jobs = [asyncio.create_task(work.run(request("one"), gate.wait))]
            jobs += [asyncio.create_task(work.run(request("one"), lambda: done.append("one"))) for _ in range(50)]
            await asyncio.sleep(0)
            jobs.append(asyncio.create_task(work.run(request("other"), lambda: done.append("other"))))
            await asyncio.sleep(0)
            gate.set()
            await asyncio.gather(*jobs)
        finally:
            lane.close()

    asyncio.run(story())
    assert "other" in done[:2]


def test_a_short_request_needs_no_thread() -> None:
    async def story() -> None:
        lane = ThreadLane("test", 1, None)
        try:
            assert await UnprovenWork(lane).run(request("one", b"short"), threading.get_ident) == threading.get_ident()
        finally:
            lane.close()

    asyncio.run(story())
