"""What one message may ask for: members of a batch, time, the size of an answer."""

from __future__ import annotations

from dataclasses import dataclass

from ophion.rpc.dispatch.wording import ErrorWording
from ophion.rpc.transport.replies import OK


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """What one dispatcher allows."""

    max_batch: int = 1024
    timeout_s: float = 30.0
    error_status: int = OK
    """Status of a method error: 200, or 400 as the original client answered (json-rpc.md 9, line 1)."""
    wording: ErrorWording = ErrorWording.ORIGINAL
    max_response_bytes: int = 256 * 1024 * 1024
    """Most of an answer that is put together before it is sent: of a batch, or of a result that is not streamed."""
