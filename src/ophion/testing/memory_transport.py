"""A pipe between two protocols of one event loop. It replaces sockets, even in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

_CHUNK = 64 * 1024


class MemoryTransport(asyncio.Transport):
    """One end of the pipe.

    Bytes arrive in order in later iterations of the event loop. A paused reader fills the writer's buffer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol, **extra: Any) -> None:
        super().__init__(extra)
        self._loop = loop
        self._protocol = protocol
        self._buffer = bytearray()
        self._high, self._low = _CHUNK, _CHUNK // 4
        self._is_reading = True
        self._is_closing = self._is_lost = self._is_writing_paused = self._is_pumping = False
        self._has_sent_end = self._is_finished = False
        self.far_end: MemoryTransport
        self.is_frozen = False
        """Whether the other end has stopped reading, like a stopped process."""

    # --- writing ------------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing:
            return
        self._buffer += data
        if len(self._buffer) > self._high and not self._is_writing_paused:
            self._is_writing_paused = True
            self._protocol.pause_writing()
        self._pump_soon()

    def get_write_buffer_size(self) -> int:
        return len(self._buffer)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = _CHUNK if high is None else high
        self._low = self._high // 4 if low is None else low

    # --- reading ------------------------------------------------------------------------------------

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self.far_end._pump_soon()

    def is_reading(self) -> bool:
        return self._is_reading

    # --- closing ------------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._pump_soon()

    def abort(self) -> None:
        """Close without sending buffered bytes."""
        self._buffer.clear()
        self._is_closing = True
        self._lose()
        self.far_end._loop.call_soon(self.far_end._lose)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Close for writing; reading continues."""
        self._is_finished = True
        self._pump_soon()

    def thaw(self) -> None:
        """Let the other end read again."""
        self.is_frozen = False
        self._pump_soon()

    def _pump_soon(self) -> None:
        if not self._is_pumping:
            self._is_pumping = True
            self._loop.call_soon(self._pump)

    def _pump(self) -> None:
        self._is_pumping = False
        far = self.far_end
        if far._is_lost:
            self._buffer.clear()
            if self._is_closing:
                self._lose()
            return
        if self.is_frozen:
            return
        if self._buffer and far._is_reading:
            chunk = bytes(self._buffer[:_CHUNK])
            del self._buffer[: len(chunk)]
            far._protocol.data_received(chunk)
            if self._is_writing_paused and len(self._buffer) <= self._low:
                self._is_writing_paused = False
                self._protocol.resume_writing()
            self._pump_soon()
        elif not self._buffer and (self._is_closing or self._is_finished):
            if self._is_closing:
                self._lose()
            if not self._has_sent_end:
                self._has_sent_end = True
                if not far._protocol.eof_received():
                    far.close()

    def _lose(self) -> None:
        if not self._is_lost:
            self._is_lost = self._is_closing = True
            self._loop.call_soon(self._protocol.connection_lost, None)


def connect_in_memory(
    loop: asyncio.AbstractEventLoop,
    dialler: asyncio.Protocol,
    listener: asyncio.Protocol,
    *,
    ip: str = "127.0.0.1",
) -> tuple[MemoryTransport, MemoryTransport]:
    """Connect two protocols. Both get `connection_made` at once."""
    here, there = (ip, 50_000), (ip, 30_303)
    near = MemoryTransport(loop, dialler, sockname=here, peername=there)
    far = MemoryTransport(loop, listener, sockname=there, peername=here)
    near.far_end, far.far_end = far, near
    dialler.connection_made(near)
    listener.connection_made(far)
    return near, far
