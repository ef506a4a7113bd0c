"""JSON-RPC on a Unix socket, which only the user of the node can open.

A message is one JSON value; nothing separates two messages. Answers and notifications are JSON values as well, each
followed by a line feed. A connection has at most `_MAX_OPEN_REQUESTS` open requests, and reads no more until one of
them is answered.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import socket
import stat
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from ophion.errors import OphionError
from ophion.rpc.transport.replies import Complete, PendingReply, Reply, whole
from ophion.rpc.transport.streaming import StreamedAnswer

logger = logging.getLogger(__name__)

_MAX_OPEN_REQUESTS: Final = 128
_MAX_CONNECTIONS: Final = 256
_MESSAGES_PER_TURN: Final = 32
"""Maximum number of messages of one client that are answered in one iteration of the event loop."""
_OWNER_ONLY: Final = 0o600
_MARKS: Final = re.compile(rb'["\\{}\[\]]')
_SPACE: Final = b" \t\r\n"


class IpcError(OphionError):
    """Raised when the service cannot listen on its path."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"IPC service cannot listen on {path}: {reason}. Choose another path with --ipc.")


class MessageTooLong(OphionError):
    """Raised when a message is longer than the limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"A message over IPC is longer than {limit} bytes.")


class JsonSplitter:
    """Splits a stream of bytes into JSON objects and arrays."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held = bytearray()
        self._read = 0
        self._depth = 0
        self._is_text = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages that `data` completes. Bytes outside of objects and arrays become part of a message,
        whose parsing then fails. Raises `MessageTooLong`.
        """
        self._held += data
        found, start = [], 0
        position = self._read
        while (mark := _MARKS.search(self._held, position)) is not None:
            position, sign = mark.end(), mark.group()
            if sign == b"\\":
                if position == len(self._held):  # the escaped byte has not arrived yet
                    position -= 1
                    break
                position += self._is_text
            elif sign == b'"':
                self._is_text = not self._is_text
            elif not self._is_text:
                self._depth += 1 if sign in b"{[" else -1
                if self._depth <= 0:
                    found.append(bytes(self._held[start:position]).strip(_SPACE))
                    start, self._depth = position, 0
        else:
            position = len(self._held)
        del self._held[:start]
        self._read = position - start
        if len(self._held) > self._max_bytes:
            raise MessageTooLong(self._max_bytes)
        return found


class IpcConnection(asyncio.Protocol):
    """One client on the socket."""

    client = "ipc"
    """Name of the client in logs and limits."""

    def __init__(self, service: IpcService) -> None:
        self._service = service
        self._splitter = JsonSplitter(service.max_message_bytes)
        self._waiting: deque[bytes] = deque()
        self._is_scheduled = False
        self._requests: set[PendingReply[Complete]] = set()
        self._is_paused = False
        self._transport = cast(asyncio.Transport, None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if len(self._service.connections) >= _MAX_CONNECTIONS:
            self._transport.abort()
            return
        self._service.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        for pending in tuple(self._requests):
            pending.abandon()
        self._waiting.clear()
        self._service.connections.discard(self)
        self._service.closed(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._waiting += self._splitter.feed(data)
        except MessageTooLong as error:
            logger.warning("ipc client disconnected reason=%s", error.message)
            self.close()
            return
        self._settle()

    def pause_writing(self) -> None:
        self._is_paused = True
        self._settle()

    def resume_writing(self) -> None:
        self._is_paused = False
        self._settle()

    def notify(self, message: bytes) -> None:
        """Send a notification. A client that leaves too much unread is disconnected."""
        if self._transport.get_write_buffer_size() > self._service.max_unread_bytes:
            logger.warning("ipc client disconnected reason=unread-notifications")
            self._transport.abort()
        else:
            self._write(message)

    def close(self) -> None:
        """Close the connection after the written bytes are sent."""
        if not self._transport.is_closing():
            self._transport.close()

    @property
    def _may_ask(self) -> bool:
        return not self._is_paused and len(self._requests) < _MAX_OPEN_REQUESTS and not self._transport.is_closing()

    def _settle(self) -> None:
        """Answer waiting messages, as far as the limits allow. Read more only when no message is waiting."""
        for _ in range(_MESSAGES_PER_TURN):
            if not self._waiting or not self._may_ask:
                break
            self._answer(self._service.handle(self._waiting.popleft(), self))
        if self._transport.is_closing():
            return
        if self._waiting and self._may_ask and not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._continue)
        if self._waiting:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _continue(self) -> None:
        self._is_scheduled = False
        self._settle()

    def _answer(self, reply: Reply) -> None:
        if isinstance(reply, StreamedAnswer):
            reply = whole(reply)
        if not isinstance(reply, PendingReply):
            self._write(reply if isinstance(reply, bytes) else reply.join())
            return
        pending = reply

        def receive(complete: Complete) -> None:
            self._requests.discard(pending)
            self._answer(complete)
            self._settle()

        pending.deliver = receive
        self._requests.add(pending)

    def _write(self, message: bytes) -> None:
        if message and not self._transport.is_closing():
            self._transport.writelines((message, b"\n"))


class IpcService:
    """Listens on a Unix socket until it is cancelled."""

    name = "IPC service"

    def __init__(
        self,
        path: Path,
        handler: Callable[[], Callable[[bytes, Any], Reply]],
        closed: Callable[[Any], None],
        max_message_bytes: int,
        max_unread_bytes: int,
    ) -> None:
        """Create the service. `handler` is called when the service starts, and returns the function that answers
        messages.
        """
        self.path = path
        self.connections: set[IpcConnection] = set()
        self.closed = closed
        """Called with each connection that has ended."""
        self.max_message_bytes = max_message_bytes
        self.max_unread_bytes = max_unread_bytes
        self.handle: Callable[[bytes, Any], Reply]
        self._handler = handler

    async def run(self, ready: Callable[[], None]) -> None:
        """Serve until cancelled, then remove the socket."""
        self.handle = self._handler()
        listening = self._bind()
        try:
            server = await asyncio.get_running_loop().create_unix_server(lambda: IpcConnection(self), sock=listening)
            logger.info("%s started and listening on %s", self.name, self.path)
            ready()
            try:
                await asyncio.Event().wait()
            finally:
                server.close()
                for connection in tuple(self.connections):
                    connection.close()
        finally:
            self.path.unlink(missing_ok=True)

    def _bind(self) -> socket.socket:
        """Bind the socket. A socket that a killed node has left is replaced."""
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            try:
                listening.bind(str(self.path))
            except OSError as error:
                if error.errno != errno.EADDRINUSE or not self._is_left_over():
                    raise
                self.path.unlink()
                listening.bind(str(self.path))
            self.path.chmod(_OWNER_ONLY)  # before the service listens, so that no other user can ever connect
        except OSError as error:
            listening.close()
            raise IpcError(self.path, error.strerror or str(error)) from error
        return listening

    def _is_left_over(self) -> bool:
        """Whether the path is a socket on which no process listens."""
        if not stat.S_ISSOCK(self.path.lstat().st_mode):
            return False
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            return probe.connect_ex(str(self.path)) == errno.ECONNREFUSED
