"""Counts failed TLS handshakes by reason, and logs some of them, so that operators notice wrong client certificates.

Any client can cause failures at any rate, so most failures are only counted. A line is logged for the first, second,
fourth, … failure of each reason, and for the first failure after a pause. Without the line after a pause, a client that
fails all day would hide a new failing client.
"""

from __future__ import annotations

import logging
import ssl
from typing import Final

logger = logging.getLogger(__name__)

_PAUSE_S: Final = 60.0
"""Seconds without a log line after which the next failure is logged in any case."""
_MAX_REASONS: Final = 32
"""Maximum reasons with their own counter. OpenSSL has some hundred reasons; clients cause about ten of them."""
_ALERT: Final = "ALERT_"


class FailedHandshakes:
    """Counts the failed handshakes of one service."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._counts: dict[str, int] = {}
        self._logged_at: dict[str, float] = {}

    def record(self, client: str, reason: str, now: float) -> None:
        """Count a failed handshake; `now` is the time in seconds."""
        kind = reason if reason in self._counts or len(self._counts) < _MAX_REASONS else ""
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if count & (count - 1) == 0 or now - self._logged_at[kind] >= _PAUSE_S:
            self._logged_at[kind] = now
            logger.warning(
                "TLS handshake failed client=%s service=%s so_far=%d reason=%s", client, self._service, count, reason
            )


def reason_of(error: OSError) -> str:
    """Return the reason of a failed handshake as text. Alerts sent by the client are marked."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the client is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        _, is_alert, words = error.reason.rpartition(_ALERT)
        reason = words.lower().replace("_", " ")
        return f"the client refuses: {reason}" if is_alert else reason
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "the client hung up, as some do that do not trust the certificate of this node"
    return "not finished in time"
