"""A TCP relay between two nodes. The relay can cut, stall or drop connections."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterable
from typing import Final, TypeAlias

_CHUNK: Final = 65536
_TICK_S: Final = 0.05

Passed: TypeAlias = Iterable[tuple[socket.socket, bytes]]


class Relay:
    """Listens on a free port and forwards connections to another port. Runs in a thread."""

    def __init__(self, target: int) -> None:
        self.is_cut = False
        """Whether the link is cut: open connections are closed and new connections are refused."""
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._is_over = False
        self._is_hanging_up = False
        self._partner: dict[socket.socket, socket.socket] = {}
        self._thread = threading.Thread(target=self._run, name=f"relay {self.port}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_over = True
        if self._thread.is_alive():
            self._thread.join(5)
        self._listener.close()

    def hang_up(self) -> None:
        """Close the current connections. New connections are accepted."""
        self._is_hanging_up = True

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._is_over:
                for key, _ in selector.select(_TICK_S):
                    if key.fileobj is self._listener:
                        self._accept(selector)
                    elif isinstance(key.fileobj, socket.socket):
                        self._pass_on(selector, key.fileobj)
                if self.is_cut or self._is_hanging_up:
                    self._is_hanging_up = False
                    self._close_all(selector)
            self._close_all(selector)

    def _accept(self, selector: selectors.BaseSelector) -> None:
        near, _ = self._listener.accept()
        if self.is_cut:
            near.close()
            return
        try:
            far = socket.create_connection(("127.0.0.1", self._target), timeout=1)
        except OSError:
            near.close()
            return
        for one, other in ((near, far), (far, near)):
            one.settimeout(1)
            self._partner[one] = other
            selector.register(one, selectors.EVENT_READ)
        self._connected(near, far)

    def _connected(self, near: socket.socket, far: socket.socket) -> None:
        """Handle a new connection. `near` is the socket of the dialling node, `far` the socket of the target."""

    def _pass_on(self, selector: selectors.BaseSelector, source: socket.socket) -> None:
        partner = self._partner.get(source)
        if partner is None:
            return
        try:
            data = source.recv(_CHUNK)
            if data:
                for target, passed in self._through(source, partner, data):
                    target.sendall(passed)
                return
        except OSError:
            pass
        self._close(selector, source)

    def _through(self, source: socket.socket, partner: socket.socket, data: bytes) -> Passed:
        """Forward bytes unchanged."""
        return ((partner, data),)

    def _close(self, selector: selectors.BaseSelector, one: socket.socket) -> None:
        other = self._partner.pop(one)
        self._partner.pop(other, None)
        for each in (one, other):
            selector.unregister(each)
            each.close()

    def _close_all(self, selector: selectors.BaseSelector) -> None:
        while self._partner:
            self._close(selector, next(iter(self._partner)))
