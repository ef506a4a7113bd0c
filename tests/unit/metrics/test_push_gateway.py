"""Tests metrics pushed to a push gateway, which the test serves."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ophion.metrics.options import MetricsConfig
from ophion.metrics.push_gateway import PushService
from ophion.runtime.metric_category import Category
from ophion.runtime.metrics_registry import MetricsRegistry


class Gateway:
    """Records requests, and answers all of them with the same status."""

    def __init__(self, status: str = "202 Accepted") -> None:
        self.requests: list[tuple[str, bytes]] = []
        self.received = asyncio.Event()
        self._status = status

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        size = int(head.lower().partition("content-length: ")[2].partition("\r")[0])
        self.requests.append((head.partition(" HTTP")[0], await reader.readexactly(size)))
        self.received.set()
        writer.write(f"HTTP/1.1 {self._status}\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()


def registry() -> MetricsRegistry:
    made = MetricsRegistry()
    made.gauge(Category.ETHEREUM, "peer_count", "Peers.").watch(lambda: 3)
    return made


async def push(port: int, wait: asyncio.Event | None, monkeypatch: pytest.MonkeyPatch) -> None:
    service = PushService(registry(), MetricsConfig(push_enabled=True, push_port=port, push_job="a job"))
    monkeypatch.setattr(service, "_interval_s", 0.01)
    running = asyncio.create_task(service.run(lambda: None))
    if wait is None:
        await asyncio.sleep(0.03)
    else:
        await asyncio.wait_for(wait.wait(), 5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_metrics_are_pushed_and_deleted_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        gateway = Gateway()
        server = await asyncio.start_server(gateway.serve, "127.0.0.1", 0)
        await push(server.sockets[0].getsockname()[1], gateway.received, monkeypatch)
        server.close()
        first, last = gateway.requests[0], gateway.requests[-1]
        assert first[0] == "POST /metrics/job/a%20job"
        assert b"ethereum_peer_count 3\n" in first[1]
        assert last == ("DELETE /metrics/job/a%20job", b"")

    asyncio.run(main())


def test_what_goes_wrong_is_logged_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        gateway = Gateway("500 No")
        server = await asyncio.start_server(gateway.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        await push(port, gateway.received, monkeypatch)
        server.close()
        await server.wait_closed()
        await push(port, None, monkeypatch)

    with caplog.at_level(logging.WARNING, "ophion.metrics.push_gateway"):
        asyncio.run(main())
    assert "metrics push refused" in caplog.text
    assert "status=500" in caplog.text
    assert "metrics push failed" in caplog.text
