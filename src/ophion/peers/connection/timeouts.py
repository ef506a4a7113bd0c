"""How long each stage of a connection may take (networking.md 1.3, 1.8)."""

from __future__ import annotations

from msgspec import Struct


class Timing(Struct, frozen=True):
    """Seconds; tests make them short."""

    connect: float = 10.0
    """For a TCP connection to come about."""
    handshake: float = 5.0
    """For auth and ack."""
    hello: float = 5.0
    """From the end of the handshake to the other side's Hello."""
    idle: float = 15.0
    """Silence before a Ping; as much silence again ends the connection."""
    message: float = 60.0
    """For one message to arrive whole, as long as bytes keep coming."""
    closing: float = 2.0
    """For the other side to close after it was told to."""
    probe: float = 2.0
    """For an answer to a Ping when somebody claims to be the same peer."""
