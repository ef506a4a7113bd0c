"""Handshakes that came to nothing: who and why, for an operator whose client has the wrong certificates.

Anybody who reaches the port can fail as often as he likes, so most failures are only counted. There is a line for the
first, the second, the fourth, ... of each reason, and another after a while: who fails all day must not hide, in the
long pauses of such a series, one who has begun to in the evening.
"""

from __future__ import annotations

import logging
import ssl
from typing import Final

logger = logging.getLogger(__name__)

_PAUSE_S: Final = 60.0
"""After this time the next failure is told whatever its number."""
_MAX_REASONS: Final = 32
"""Reasons that are counted one by one; OpenSSL knows some hundred, clients have use for ten."""
_ALERT: Final = "ALERT_"


class FailedHandshakes:
    """Handshakes of one service that failed."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._counts: dict[str, int] = {}
        self._told_at: dict[str, float] = {}

    def note(self, client: str, reason: str, now: float) -> None:
        """One more, at a time in seconds."""
        kind = reason if reason in self._counts or len(self._counts) < _MAX_REASONS else ""
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        if count & (count - 1) == 0 or now - self._told_at[kind] >= _PAUSE_S:
            self._told_at[kind] = now
            logger.warning(
                "TLS handshake failed client=%s service=%s so_far=%d reason=%s", client, self._service, count, reason
            )


def reason_of(error: OSError) -> str:
    """Why a handshake failed, in words; what the client itself has complained of is marked as such."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the client is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError) and error.reason:
        _, is_alert, words = error.reason.rpartition(_ALERT)
        said = words.lower().replace("_", " ")
        return f"the client refuses: {said}" if is_alert else said
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "the client hung up, as some do that do not trust the certificate of this node"
    return "not finished in time"
