"""`Listener`: the TCP port for peers. Accepts each socket when it arrives, or in batches during a flood.

Accepting and closing a socket costs less than the iteration of the event loop around it. During a flood, sockets wait
some milliseconds in the listen backlog, and the listener accepts all of these sockets together.
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
_MAX_ACCEPTS: Final = 32
"""Limit of sockets accepted in one iteration of the event loop."""
_BATCH_INTERVAL_S: Final = 0.01
_BATCH_SIZE: Final = 64
"""Number of sockets that the listener accepts per interval during a flood."""
_RETRY_S: Final = 1.0
"""Seconds without accepting after the process had no free file descriptor."""


class Listener:
    """Accepts TCP connections and passes each socket to a callback. Runs on the event loop; not thread-safe."""

    def __init__(
        self,
        interface: str,
        port: int,
        take: Callable[[socket.socket, str], None],
        is_full: Callable[[], bool],
    ) -> None:
        """Open the port. `take` receives each accepted socket and its IP. Raises `OSError` if the port is in use."""
        self._loop = asyncio.get_running_loop()
        self._take = take
        self._is_full = is_full
        self._timer: asyncio.TimerHandle | None = None
        family, kind, protocol, _, address = socket.getaddrinfo(interface, port, type=socket.SOCK_STREAM)[0]
        self._socket = socket.socket(family, kind, protocol)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            self._socket.setblocking(False)
            self._socket.bind(address)
            self._socket.listen(_BACKLOG)
        except OSError:
            self._socket.close()
            raise
        self.port = int(self._socket.getsockname()[1])
        self._loop.add_reader(self._socket.fileno(), self._on_ready)

    def close(self) -> None:
        """Close the TCP port for peers."""
        if self._timer is not None:
            self._timer.cancel()
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _on_ready(self) -> None:
        if self._is_full():
            self._loop.remove_reader(self._socket.fileno())
            self._take_batch()
        else:
            self._accept(_MAX_ACCEPTS)

    def _take_batch(self) -> None:
        self._timer = None
        if self._accept(_BATCH_SIZE) and not self._is_full():
            self._loop.add_reader(self._socket.fileno(), self._on_ready)
        elif self._timer is None:
            self._timer = self._loop.call_later(_BATCH_INTERVAL_S, self._take_batch)

    def _accept(self, max_sockets: int) -> bool:
        """Accept waiting sockets up to the limit. Returns False when accepting must pause."""
        for _ in range(max_sockets):
            try:
                accepted, address = self._socket.accept()
            except (BlockingIOError, ConnectionError):
                return True  # the backlog is empty, or the remote node has closed the connection
            except OSError as error:
                # no file descriptors are left: pause accepting, because waiting sockets would wake the event loop in
                # each iteration
                log.warning("cannot accept peer connections error=%s", error)
                self._loop.remove_reader(self._socket.fileno())
                self._timer = self._loop.call_later(_RETRY_S, self._take_batch)
                return False
            self._take(accepted, socket_ip(str(address[0])))
        return True
