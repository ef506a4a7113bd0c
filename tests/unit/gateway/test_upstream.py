"""Tests the connections of a gateway to one service: which stay open, and how long."""

from __future__ import annotations

import asyncio

from ophion.gateway.backends import ServiceAddress
from ophion.gateway.upstream import Upstream

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


def test_a_burst_leaves_few_idle_connections() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1024):
            await all_asked.wait()
            writer.write(ANSWER)
        writer.close()

    async def story() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        upstream = Upstream(None, "node", ServiceAddress("127.0.0.1", port))
        answered = asyncio.Semaphore(0)
        for _ in range(100):
            pending = upstream.ask(b"GET / HTTP/1.1\r\n\r\n")
            pending.deliver = lambda _: answered.release()  # type: ignore[union-attr]
        all_asked.set()
        async with asyncio.timeout(10):
            for _ in range(100):
                await answered.acquire()
        assert len(upstream.idle) == 100
        upstream.tick(1.0)
        assert len(upstream.idle) == 100
        upstream.tick(2.0)
        assert len(upstream.idle) == 64
        upstream.tick(30.0)
        assert len(upstream.idle) == 64
        upstream.tick(30.0)
        assert upstream.idle == []
        server.close()

    all_asked = asyncio.Event()
    asyncio.run(story())
