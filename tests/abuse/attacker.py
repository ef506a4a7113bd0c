"""Who attacks: a thread of its own, which goes last where there are too few processors, and what it has delivered.

Attackers of a real node bring their own processors. Here they share those of the node, and as equals they took more
than half of what honest clients waited for: time in which the node was ready to go on and others were running (the
column "no processor" of the table). So whoever attacks has the lowest priority that a process can ask for; the node,
the proxy and the honest client have the usual one. That must not make an attack weaker: each row says how many
connections were made and how many bytes have arrived.
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
"""Where TCP_INFO says how many bytes have arrived at the other end."""

Result = TypeVar("Result")


@dataclass
class Delivered:
    """What has reached the node since somebody last asked."""

    connections: int = 0
    sent_bytes: int = 0

    def note(self, writer: asyncio.StreamWriter) -> None:
        """A connection is about to be closed."""
        self.connections += 1
        connection = writer.get_extra_info("socket")
        with contextlib.suppress(OSError):  # the node may have closed it
            found = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
            self.sent_bytes += ACKNOWLEDGED.unpack(found)[0]

    def take(self) -> Delivered:
        taken = Delivered(self.connections, self.sent_bytes)
        self.connections = self.sent_bytes = 0
        return taken


delivered = Delivered()


async def attacking(attack: Callable[[], Awaitable[Result]]) -> Result:
    """Run it in a thread that goes last. Processes that others start meanwhile keep the usual priority."""

    def run() -> Result:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        return asyncio.run(attack())  # type: ignore[arg-type]

    return await asyncio.to_thread(run)
