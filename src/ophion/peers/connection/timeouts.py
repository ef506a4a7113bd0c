"""Timeouts of each stage of a connection (networking.md 1.3, 1.8)."""

from __future__ import annotations

from msgspec import Struct


class Timing(Struct, frozen=True):
    """Timeouts in seconds; tests shorten them."""

    connect: float = 10.0
    """TCP connect."""
    handshake: float = 5.0
    """RLPx auth and ack."""
    hello: float = 5.0
    """From the end of the handshake to the remote Hello."""
    idle: float = 15.0
    """Silence before a Ping; after the same time again the connection ends."""
    message: float = 60.0
    """From the first to the last byte of one message."""
    closing: float = 2.0
    """From our Disconnect to the close by the remote node."""
    probe: float = 2.0
    """Answer to the Ping that is sent when a second connection proves the same key."""
