"""Pushes metrics to a Prometheus push gateway at intervals, and deletes the pushed metrics when the node stops.

Errors are logged, and the push is retried at the next interval. The node runs without the gateway too.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final
from urllib.parse import quote

from ophion.metrics.options import MetricsConfig
from ophion.metrics.server import CONTENT_TYPE
from ophion.runtime.http_client import HttpClient, HttpError
from ophion.runtime.metrics_registry import MetricsRegistry

logger = logging.getLogger(__name__)

_PUSH_TIMEOUT_S: Final = 10.0
_MAX_REPLY_BYTES: Final = 64 * 1024


class PushService:
    """Pushes metrics until it is cancelled."""

    name = "metrics push"

    def __init__(self, registry: MetricsRegistry, config: MetricsConfig) -> None:
        self._registry = registry
        self._categories = frozenset(config.categories)
        host = f"[{config.push_host}]" if ":" in config.push_host else config.push_host
        self._url = f"http://{host}:{config.push_port}/metrics/job/{quote(config.push_job, safe='')}"
        self._client = HttpClient(self._url, timeout_s=_PUSH_TIMEOUT_S, max_reply_bytes=_MAX_REPLY_BYTES)
        self._interval_s = float(config.push_interval_s)

    async def run(self, ready: Callable[[], None]) -> None:
        """Push at intervals, first after half an interval. At the end, delete the pushed metrics."""
        logger.info("pushing metrics url=%s interval_s=%.0f", self._url, self._interval_s)
        ready()
        try:
            await asyncio.sleep(self._interval_s / 2)
            while True:
                await self._send("POST", self._registry.text(self._categories).encode())
                await asyncio.sleep(self._interval_s)
        finally:
            await self._send("DELETE", b"")
            self._client.close()

    async def _send(self, method: str, body: bytes) -> None:
        try:
            reply = await self._client.request(method, "", body, {"Content-Type": CONTENT_TYPE.decode()})
        except HttpError as error:
            logger.warning("metrics push failed url=%s error=%s", self._url, error)
            return
        if not 200 <= reply.status < 300:
            logger.warning("metrics push refused url=%s method=%s status=%d", self._url, method, reply.status)
