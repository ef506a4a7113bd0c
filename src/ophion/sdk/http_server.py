"""`ChainServer`: JSON-RPC over HTTP and WebSocket on one port, for other programs on the same chain."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING

from ophion.errors import OphionError
from ophion.runtime.supervisor import Supervisor
from ophion.sdk.errors import ChainError

if TYPE_CHECKING:
    from ophion.sdk.embedded_node import EmbeddedNode


class ChainServer:
    """Serves a chain. A thread runs the event loop of the chain until `close`. A context manager."""

    def __init__(self, node: EmbeddedNode, host: str, port: int) -> None:
        interface = node.dispatch.interface
        self._node = node
        self._listener = interface.listening["jsonrpc"]
        self._listener.host, self._listener.port = host, port
        self._interface = interface
        self._supervisor: Supervisor | None = None
        self._task: asyncio.Task[None] | None = None
        node.start_thread()
        try:
            node.runner.run(self._start())
        except BaseException:
            node.runner.stop_thread()
            raise

    @property
    def port(self) -> int:
        """The port on which the server listens."""
        return self._listener.port

    @property
    def url(self) -> str:
        return f"http://{self._listener.host}:{self.port}"

    async def _start(self) -> None:
        core = self._node.core
        core.mining.start()
        others = (one for one in self._interface.services if one not in self._interface.listening.values())
        supervisor = self._supervisor = Supervisor([core.pool, core.mining, *others, self._listener])
        started = asyncio.Event()

        async def opened() -> None:
            await self._listener.open()
            started.set()

        task = self._task = asyncio.create_task(supervisor.run(opened), name="server of the chain")
        waiting = asyncio.create_task(started.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done():
            core.mining.stop()
            error = task.exception()
            raise ChainError(f"The chain cannot be served: {error}") from error

    def close(self) -> None:
        """Stop listening. The chain stays open."""
        if self._supervisor is None or self._task is None:
            return
        self._node.runner.run(self._stop())
        self._supervisor = self._task = None
        self._node.runner.stop_thread()

    async def _stop(self) -> None:
        assert self._supervisor is not None
        assert self._task is not None
        self._supervisor.stop()
        try:
            await self._task
        except OphionError as error:
            raise ChainError(f"The server has failed: {error}") from error
        finally:
            self._node.core.mining.stop()

    def __enter__(self) -> ChainServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<ChainServer {self.url}>"
