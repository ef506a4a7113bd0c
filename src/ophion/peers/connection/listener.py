"""`Listener`: the port for peers. Sockets are taken from it at once, or in batches while there is a crowd.

Most of what it costs to take a socket and close it again is the turn of the loop around it. A crowd waits some
milliseconds in the queue of the system, and is taken together.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final

from ophion.primitives.enode import socket_ip

log = logging.getLogger(__name__)

_BACKLOG: Final = 128
_AT_ONCE: Final = 32
"""Sockets taken in one turn of the loop."""
_BATCH_S: Final = 0.01
_BATCH: Final = 64
"""While there is a crowd: so many in so many seconds."""
_STUCK_S: Final = 1.0
"""Before the next attempt where the system has nothing left."""


class Listener:
    """A bound socket and what becomes of those who connect. Belongs to the event loop."""

    def __init__(
        self,
        interface: str,
        port: int,
        take: Callable[[socket.socket, str], None],
        is_crowded: Callable[[], bool],
    ) -> None:
        """`take` is given every socket, with the address of the other side. `OSError`: the port cannot be had."""
        self._loop = asyncio.get_running_loop()
        self._take = take
        self._is_crowded = is_crowded
        self._timer: asyncio.TimerHandle | None = None
        family, kind, protocol, _, place = socket.getaddrinfo(interface, port, type=socket.SOCK_STREAM)[0]
        self._socket = socket.socket(family, kind, protocol)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            self._socket.setblocking(False)
            self._socket.bind(place)
            self._socket.listen(_BACKLOG)
        except OSError:
            self._socket.close()
            raise
        self.port = int(self._socket.getsockname()[1])
        self._loop.add_reader(self._socket.fileno(), self._on_ready)

    def close(self) -> None:
        """Listen no longer."""
        if self._timer is not None:
            self._timer.cancel()
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _on_ready(self) -> None:
        if self._is_crowded():
            self._loop.remove_reader(self._socket.fileno())
            self._take_batch()
        else:
            self._accept(_AT_ONCE)

    def _take_batch(self) -> None:
        self._timer = None
        if self._accept(_BATCH) and not self._is_crowded():
            self._loop.add_reader(self._socket.fileno(), self._on_ready)
        elif self._timer is None:
            self._timer = self._loop.call_later(_BATCH_S, self._take_batch)

    def _accept(self, most: int) -> bool:
        """Take so many; False where none can be taken for a while."""
        for _ in range(most):
            try:
                taken, place = self._socket.accept()
            except (BlockingIOError, ConnectionError):
                return True  # nobody waits, or who waited is gone
            except OSError as error:
                # this process has no files left; who waits stays in the queue, and the loop must not spin about it
                log.warning("connections of peers cannot be accepted error=%s", error)
                self._loop.remove_reader(self._socket.fileno())
                self._timer = self._loop.call_later(_STUCK_S, self._take_batch)
                return False
            self._take(taken, socket_ip(str(place[0])))
        return True
