"""A gateway in a thread, and upstreams with scripted behaviour."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from http.client import HTTPConnection
from types import TracebackType
from typing import Any

import uvloop

from ophion.gateway.backends import BackendNetwork, BackendNode, ServiceAddress, ServiceKind
from ophion.gateway.routing import Page, PageAnswer
from ophion.gateway.service import LIMITS, GatewayService
from ophion.rpc.transport.http.policy import HttpLimits
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.memory_budget import MemoryBudget

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def site(**ports: int) -> BackendNetwork:
    """Return a site with one node. `ports` maps names of `ServiceKind` to the ports of its services."""
    places = {ServiceKind[name.upper()]: ServiceAddress("127.0.0.1", port) for name, port in ports.items()}
    return BackendNetwork("test", None, (BackendNode("node", "rpc", places),))


class Loop:
    """A context manager that runs a server in a thread with its own event loop."""

    def __init__(self) -> None:
        self.loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._ready = threading.Event()
        self._task: asyncio.Task[None] | None = None

    async def serve(self, ready: Callable[[], None]) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self._task = self.loop.create_task(self.serve(self._ready.set))
        try:
            self.loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        finally:
            left = asyncio.all_tasks(self.loop)
            for task in left:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self.loop.close()

    def __enter__(self) -> Any:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self.loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(10)


class Upstream(Loop):
    """A service on a free port whose behaviour the test scripts."""

    def __init__(self, talk: Talk) -> None:
        super().__init__()
        self._talk = talk
        self.connections = 0
        self.port = 0

    async def serve(self, ready: Callable[[], None]) -> None:
        async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self.connections += 1
            try:
                await self._talk(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(met, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        ready()
        await asyncio.Event().wait()


def _plain_page(path: str, headers: Mapping[bytes, bytes]) -> PageAnswer | None:
    return (200, (("Content-Type", "text/html"),), b"page") if path == "/" else None


class Gateway(Loop):
    """A gateway in front of a site."""

    def __init__(
        self,
        site: BackendNetwork,
        limits: HttpLimits = LIMITS,
        budget: MemoryBudget | None = None,
        page: Page = _plain_page,
    ) -> None:
        super().__init__()
        self.shared = SharedResources(budget or MemoryBudget())
        self.service = GatewayService(lambda: site, page, port=0, limits=limits, shared=self.shared)

    async def serve(self, ready: Callable[[], None]) -> None:
        await self.service.run(ready)

    @property
    def port(self) -> int:
        return self.service.port

    def client(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """Send one request over a new connection."""
        connection = self.client()
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def socket(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)


def call(method: str, *params: Any) -> bytes:
    """Return a JSON-RPC request."""
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


async def request_of(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Return HTTP head and body of the next request."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        (int(line.partition(b":")[2]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
    )
    return head, await reader.readexactly(length)
