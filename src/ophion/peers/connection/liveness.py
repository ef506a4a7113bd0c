"""`PeerLiveness`: decides from the times of received bytes when to ping a peer and when the peer has timed out."""

from __future__ import annotations

from ophion.peers.connection.timeouts import StageTimeouts


class PeerLiveness:
    """Records when a connection last received bytes and messages, to detect a dead peer. Times are monotonic
    seconds.
    """

    __slots__ = ("_timing", "is_pinged", "is_probed", "message_at", "received_at")

    def __init__(self, timing: StageTimeouts, now: float) -> None:
        self._timing = timing
        self.received_at = now
        """Time of the last received bytes."""
        self.message_at = now
        """Time of the bytes that completed the last message."""
        self.is_pinged = False
        self.is_probed = False
        """Whether a Ping with the short timeout is unanswered."""

    def received(self, now: float) -> None:
        """Record received bytes. Any received bytes count as the answer to a Ping."""
        self.received_at = now
        self.is_pinged = self.is_probed = False

    def extend(self, now: float) -> None:
        """Give the peer one more idle period after a stall of this process. The caller then pings the peer."""
        self.received_at = self.message_at = max(self.received_at, now - self._timing.idle)
        self.is_pinged = True

    def problem(self, now: float, has_partial_message: bool) -> str | None:
        """Return why the peer has timed out, or None if the peer has not timed out."""
        timing = self._timing
        if self.is_probed:
            return "no answer to a ping after a second connection proved the same key"
        if has_partial_message and now - self.message_at >= timing.message:
            return f"a message takes longer than {timing.message:g} s to arrive"
        silent = now - self.received_at
        return f"nothing received for {silent:.0f} s" if silent >= 2 * timing.idle else None

    def needs_ping(self, now: float) -> bool:
        """Whether the peer is silent and not pinged yet. If so, the peer counts as pinged: the caller sends a Ping."""
        if self.is_pinged or now - self.received_at < self._timing.idle:
            return False
        self.is_pinged = True
        return True

    def next_check_s(self, now: float) -> float:
        """Return the seconds until the next check whether the peer still sends messages."""
        silent, idle = now - self.received_at, self._timing.idle
        return (2 if silent >= idle else 1) * idle - silent
