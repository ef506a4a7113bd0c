"""Starts services in order, stops them in reverse order, and stops all when one fails.

A service is a coroutine that runs until it is cancelled. It reports when it is ready, because the next service may
depend on it: a server is ready when its port is bound. If a service returns early or raises, the node stops.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

log = logging.getLogger(__name__)

_STOP_TIMEOUT_S = 5.0


class Service(Protocol):
    """A task that runs as long as the node."""

    name: str

    async def run(self, ready: Callable[[], None]) -> None:
        """Run until cancelled. Call `ready` once, when other services may use this service."""


class ServiceEnded(Exception):
    """Raised when a service returns although it was not stopped."""

    def __init__(self, name: str) -> None:
        super().__init__(f"service {name} ended by itself")
        self.name = name


class Supervisor:
    """Runs services until `stop`, or until one of them fails."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services
        self._stop = asyncio.Event()
        self._running: list[tuple[str, asyncio.Task[None]]] = []

    def stop(self) -> None:
        """Request an orderly stop; `run` returns when all services have ended."""
        self._stop.set()

    async def run(self, started: Callable[[], Awaitable[None] | None] = lambda: None) -> None:
        """Start every service, await `started`, then wait for `stop`. Raises the error of a failed service."""
        stopping = asyncio.create_task(self._stop.wait(), name="stop")
        try:
            for service in self._services:
                if not await self._start(service, stopping):
                    return
            last_step = started()
            if last_step is not None:
                await last_step
            await self._wait(stopping)
        finally:
            stopping.cancel()
            await self._shut_down()

    async def _start(self, service: Service, stopping: asyncio.Task[bool]) -> bool:
        ready = asyncio.Event()
        self._running.append((service.name, asyncio.create_task(service.run(ready.set), name=service.name)))
        is_ready = asyncio.create_task(ready.wait())
        try:
            tasks = {task for _, task in self._running}
            await asyncio.wait({is_ready, stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            self._raise_failures()
            return not stopping.done()
        finally:
            is_ready.cancel()

    async def _wait(self, stopping: asyncio.Task[bool]) -> None:
        tasks = {task for _, task in self._running}
        await asyncio.wait({stopping, *tasks}, return_when=asyncio.FIRST_COMPLETED)
        self._raise_failures()

    def _raise_failures(self) -> None:
        for name, task in self._running:
            if task.done():
                error = None if task.cancelled() else task.exception()
                raise error if error is not None else ServiceEnded(name)

    async def _shut_down(self) -> None:
        """Cancel services in reverse start order. Errors are only logged, because the other services must stop too."""
        for name, task in reversed(self._running):
            if task.done():
                continue
            task.cancel()
            await asyncio.wait({task}, timeout=_STOP_TIMEOUT_S)
            if not task.done():
                log.error("service does not stop name=%s", name)
            elif not task.cancelled() and task.exception() is not None:
                log.error("service failed while stopping name=%s error=%r", name, task.exception())
