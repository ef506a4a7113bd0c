"""Tests services on real loopback sockets, and their shutdown."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from ophion.rpc.endpoints.health import Health
from ophion.rpc.endpoints.services import (
    HttpSettings,
    WebSocketSettings,
    effective_groups,
    http_service,
    websocket_service,
)
from ophion.rpc.transport.http.policy import HttpLimits
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.listener import ListenError
from tests.unit.rpc.interface import Interface


async def serving(service: Any, story: Callable[[], Awaitable[None]]) -> None:
    ready = asyncio.Event()
    running = asyncio.create_task(service.run(ready.set))
    waiting = asyncio.create_task(ready.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if running.done():
        await running
    try:
        await story()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def exchange(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return answer


def http(dev: Interface, **settings: Any) -> HttpService:
    return http_service(dev.context, HttpSettings(port=0, **settings), Health(lambda: None))


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /", 201), ("GET /liveness", 200), ("GET /readiness", 200), ("GET /readiness?minPeers=5", 200),
        ("GET /readiness?minPeers=x", 503), ("GET /readiness?maxBlocksBehind=1.5", 503), ("GET /other", 404),
        ("GET /readiness?" + "a&" * 20_000, 503),
        ("POST /jsonrpc", 404), ("PUT /", 405), ("DELETE /", 405), ("HEAD /", 405), ("POST /liveness", 404),
    ],
)  # fmt: skip
def test_the_paths_of_the_endpoint(dev: Interface, request_line: str, status: int) -> None:
    service = http(dev)

    async def story() -> None:
        head = f"{request_line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        answer = await exchange(service.port, head.encode())
        assert int(answer.split()[1]) == status
        if "/liveness" in request_line and status == 200:
            assert answer.endswith(b'{"status":"UP"}')
        if status == 503:
            assert answer.endswith(b'{"status":"DOWN"}')

    dev.run(serving(service, story))


def test_login_says_that_there_is_no_authentication(dev: Interface) -> None:
    service = http(dev)

    async def story() -> None:
        answer = await exchange(
            service.port, b"POST /login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        )
        assert answer.startswith(b"HTTP/1.1 400 Authentication not enabled\r\n")

    dev.run(serving(service, story))


def test_a_request_over_http(dev: Interface) -> None:
    service = http(dev)

    async def story() -> None:
        body = b'{"id":1,"method":"eth_chainId"}'
        head = b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
        answer = await exchange(service.port, head + body)
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["result"] == "0x7e2"

    dev.run(serving(service, story))


def test_a_port_that_is_taken_is_one_clear_error(dev: Interface) -> None:
    first = http(dev)

    async def story() -> None:
        second = http_service(dev.context, HttpSettings(port=first.port), Health(lambda: None))
        text = f"^JsonRPC service cannot listen on 127.0.0.1:{first.port}: Address already in use. Another program has"
        with pytest.raises(ListenError, match=text):
            await second.run(lambda: None)

    dev.run(serving(first, story))


def test_the_idlest_connection_is_evicted_at_the_limit(dev: Interface) -> None:
    service = http(dev, limits=HttpLimits(max_connections=1))

    async def story() -> None:
        idle, first = await asyncio.open_connection("127.0.0.1", service.port)
        await asyncio.sleep(0.05)
        reader, second = await asyncio.open_connection("127.0.0.1", service.port)
        second.write(b"GET /liveness HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert await asyncio.wait_for(idle.read(), 5) == b""
        assert (await asyncio.wait_for(reader.readline(), 5)).startswith(b"HTTP/1.1 200")
        first.close()
        second.close()

    dev.run(serving(service, story))


def test_stopping_closes_every_connection(dev: Interface) -> None:
    service = http(dev)

    async def main() -> None:
        held: list[asyncio.StreamReader] = []

        async def story() -> None:
            reader, _ = await asyncio.open_connection("127.0.0.1", service.port)
            held.append(reader)
            await asyncio.sleep(0.05)

        await serving(service, story)
        assert await asyncio.wait_for(held[0].read(), 5) == b""

    dev.run(main())


def test_websocket_service_listens(dev: Interface) -> None:
    service = websocket_service(dev.context, WebSocketSettings(port=0))

    async def story() -> None:
        answer = await exchange(service.port, get("/"))
        assert answer.endswith(b"Websocket endpoint can't handle HTTP requests")

    dev.run(serving(service, story))


def test_the_privacy_group_brings_its_twin() -> None:
    assert effective_groups(("eth", "eea")) == {"eth", "eea", "priv", "privx"}
    assert effective_groups(("priv",)) == {"eea", "priv", "privx"}
