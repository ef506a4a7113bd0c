"""Address and connection state of the other end of a transport."""

from __future__ import annotations

import asyncio
import socket
from typing import Final

_TCP_INFO: Final = getattr(socket, "TCP_INFO", 0)
_TCP_CLOSE: Final = 7


def is_encrypted(transport: asyncio.BaseTransport) -> bool:
    """Whether the transport uses TLS."""
    return transport.get_extra_info("sslcontext") is not None


def has_gone(transport: asyncio.BaseTransport) -> bool:
    """Return whether the other end has reset the connection. A paused transport does not report a reset."""
    connection = transport.get_extra_info("socket")
    if connection is None or not _TCP_INFO:
        return False
    try:
        return bool(connection.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 1)[0] == _TCP_CLOSE)
    except OSError:
        return False


def address_of(transport: asyncio.BaseTransport) -> str:
    """Return the IP address of the other end; empty if the transport has no IP address."""
    name = transport.get_extra_info("peername")
    return str(name[0]) if isinstance(name, tuple) else ""
