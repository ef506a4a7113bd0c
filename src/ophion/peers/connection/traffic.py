"""Counters of peer connections; metrics read them when scraped."""

from __future__ import annotations

from collections import Counter

from ophion.peers.rlpx.capability import SharedCapability

P2P = "p2p"
_P2P_NAMES = ("Hello", "Disconnect", "Ping", "Pong")


class Traffic:
    """Counters of messages and connections since the node started."""

    __slots__ = (
        "bytes_received",
        "bytes_sent",
        "connected",
        "disconnected",
        "dropped",
        "payload_received",
        "payload_sent",
        "received",
        "sent",
    )

    def __init__(self) -> None:
        self.bytes_received = 0
        """Number of received bytes, before decryption."""
        self.bytes_sent = 0
        self.received: Counter[tuple[str, str, int]] = Counter()
        """Received messages by capability, message name and code."""
        self.sent: Counter[tuple[str, str, int]] = Counter()
        self.payload_received: Counter[str] = Counter()
        """Received bytes by capability, after decompression."""
        self.payload_sent: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        """Gossip messages dropped at a full send queue, by capability."""
        self.connected: Counter[str] = Counter()
        """Number of accepted peers, by direction: `inbound` or `outbound`."""
        self.disconnected: Counter[tuple[str, str]] = Counter()
        """Number of ended connections, by the side that ended the connection (`local` or `remote`) and by reason."""

    def note_received(self, shared: SharedCapability, code: int, size: int) -> None:
        """Count one received message."""
        capability = shared.capability
        self.received[capability.name, capability.message_name(code), code] += 1
        self.payload_received[capability.name] += size

    def note_sent(self, shared: SharedCapability, code: int, size: int) -> None:
        """Count one sent message, when it is queued."""
        capability = shared.capability
        self.sent[capability.name, capability.message_name(code), code] += 1
        self.payload_sent[capability.name] += size

    def note_p2p(self, counter: Counter[tuple[str, str, int]], code: int) -> None:
        """Count one message of the p2p base protocol."""
        counter[P2P, _P2P_NAMES[code], code] += 1
