"""A push gateway is told at intervals what Prometheus would have asked for, and told at the end to forget it.

Nothing that goes wrong there concerns the node: it is logged and tried again at the next interval.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from ophion.metrics.options import MetricsConfig
from ophion.metrics.server import CONTENT_TYPE
from ophion.runtime.metrics import MetricsRegistry

logger = logging.getLogger(__name__)

_TIMEOUT_S: Final = 10.0


class PushService:
    """Pushes until it is cancelled."""

    name = "metrics push"

    def __init__(self, registry: MetricsRegistry, config: MetricsConfig) -> None:
        self._registry = registry
        self._categories = frozenset(config.categories)
        self._host = config.push_host
        self._port = config.push_port
        self._interval_s = float(config.push_interval_s)
        self._path = f"/metrics/job/{quote(config.push_job, safe='')}"

    async def run(self, ready: Callable[[], None]) -> None:
        """The first push comes after half an interval."""
        logger.info("metrics are pushed to http://%s:%d%s", self._host, self._port, self._path)
        ready()
        try:
            await asyncio.sleep(self._interval_s / 2)
            while True:
                await self._send("POST", self._registry.text(self._categories).encode())
                await asyncio.sleep(self._interval_s)
        finally:
            await self._send("DELETE", b"")

    async def _send(self, method: str, body: bytes) -> None:
        try:
            # not `wait_for`, which may lose a cancellation that comes with the answer
            async with asyncio.timeout(_TIMEOUT_S):
                status = await self._exchange(method, body)
        except (OSError, TimeoutError, ValueError, IndexError) as error:
            logger.warning("metrics could not be pushed to %s:%d: %s", self._host, self._port, str(error) or "timeout")
            return
        if not 200 <= status < 300:
            logger.warning("the push gateway %s:%d answered %s with status %d", self._host, self._port, method, status)

    async def _exchange(self, method: str, body: bytes) -> int:
        reader, writer = await asyncio.open_connection(self._host, self._port)
        try:
            head = (
                f"{method} {self._path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nConnection: close\r\n"
                f"Content-Type: {CONTENT_TYPE.decode()}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
            line = await reader.readline()
            return int(line.split()[1])
        finally:
            writer.close()
