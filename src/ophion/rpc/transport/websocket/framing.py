"""Frames that this node sends: unmasked, and built from bytes without conversion to `str`."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

PING: Final = b"\x89\x00"


class CloseCode(IntEnum):
    """Close codes of this node (RFC 6455, 7.4.1)."""

    NORMAL = 1000
    GOING_AWAY = 1001
    POLICY = 1008
    TRY_AGAIN_LATER = 1013


def text_head(size: int) -> bytes:
    """Return the head of an unfragmented text frame."""
    if size < 126:
        return bytes((0x81, size))
    if size < 1 << 16:
        return b"\x81\x7e" + size.to_bytes(2, "big")
    return b"\x81\x7f" + size.to_bytes(8, "big")


def pong(payload: bytes) -> bytes:
    """Return the pong frame that answers a ping."""
    return bytes((0x8A, len(payload))) + payload


def closing(code: int | None, reason: str = "") -> bytes:
    """Return a close frame. Without `code`, the frame has no code, like the client's close frame."""
    payload = b"" if code is None else code.to_bytes(2, "big") + reason.encode()
    return bytes((0x88, len(payload))) + payload
