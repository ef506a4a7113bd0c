"""Runs attackers in a thread with low priority, and counts their connections and bytes.

Attackers of a real node have their own processors, but in this test they share the processors of the node. With equal
priority, attackers would cause more than half of the latency of honest clients: time in which the node was ready but
had no processor (column "no processor"). So attackers run with the lowest priority. The node, the proxy and the honest
client run with the default priority. Each row shows its number of connections and delivered bytes, because low priority
must not weaken an attack.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

NICENESS = 10
TCP_INFO_BYTES = 128
ACKNOWLEDGED = struct.Struct("=120xQ")
"""Position of the acknowledged bytes in TCP_INFO."""

Result = TypeVar("Result")


@dataclass
class Delivered:
    """Connections and bytes that have reached the node since the last query."""

    connections: int = 0
    sent_bytes: int = 0

    def note(self, writer: asyncio.StreamWriter) -> None:
        """Count the bytes of a connection that is about to be closed."""
        self.connections += 1
        connection = writer.get_extra_info("socket")
        if connection is None:  # the node has closed a TLS connection
            return
        with contextlib.suppress(OSError):  # the node may have closed the connection
            found = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
            self.sent_bytes += ACKNOWLEDGED.unpack(found)[0]

    def take(self) -> Delivered:
        taken = Delivered(self.connections, self.sent_bytes)
        self.connections = self.sent_bytes = 0
        return taken


delivered = Delivered()


async def attacking(attack: Callable[[], Awaitable[Result]]) -> Result:
    """Run an attack in a thread with low priority. Processes started meanwhile keep the default priority."""

    def run() -> Result:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        return asyncio.run(attack())  # type: ignore[arg-type]

    return await asyncio.to_thread(run)
