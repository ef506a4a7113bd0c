"""Disconnect reasons of the p2p protocol (networking.md 1.8)."""

from __future__ import annotations

from enum import IntEnum

from ophion.errors import OphionError


class DisconnectReason(IntEnum):
    """Disconnect reasons; the value is the code on the wire."""

    REQUESTED = 0x00
    """An operator removed the peer, or a permission was withdrawn."""
    TCP_ERROR = 0x01
    """Local reason for a socket that closed without a Disconnect. Never sent."""
    BREACH = 0x02
    """The peer sent an undecodable or unsolicited message, an invalid block, or a message at the wrong stage."""
    USELESS = 0x03
    """The nodes share no capability, or the peer cannot serve the best block that it announced."""
    TOO_MANY_PEERS = 0x04
    ALREADY_CONNECTED = 0x05
    INCOMPATIBLE_VERSION = 0x06
    """Incompatible p2p version. This node never sends this reason, because it accepts every p2p version."""
    NULL_IDENTITY = 0x07
    CLIENT_QUITTING = 0x08
    UNEXPECTED_IDENTITY = 0x09
    CONNECTED_TO_SELF = 0x0A
    TIMEOUT = 0x0B
    INVALID_RECEIPT = 0x0F
    """Invalid receipt. This node never sends this reason, and only one other client uses it."""
    SUBPROTOCOL = 0x10
    """The peer is on another network, genesis or fork. Other clients also send this reason for errors in a handler."""

    @property
    def label(self) -> str:
        """Name of the reason in logs and metrics."""
        return self.name.lower()


class PeerMisbehaved(OphionError):
    """Raised when a peer breaks a rule. The connection ends with the reason."""

    def __init__(self, reason: DisconnectReason, text: str) -> None:
        self.reason = reason
        self.text = text
        super().__init__(f"{text} ({reason.label})")
