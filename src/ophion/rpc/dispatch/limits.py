"""What one message may ask for: members of a batch, values, time, the size of an answer; and where its work goes."""

from __future__ import annotations

from msgspec import Struct, field

from ophion.rpc.dispatch.error_wording import ErrorWording
from ophion.rpc.dispatch.large_requests import LargeRequests
from ophion.rpc.transport.replies import OK
from ophion.runtime.fair_scheduler import FairScheduler
from ophion.runtime.lanes import InlineLane, Lane


class DispatchLimits(Struct, frozen=True):
    """What one dispatcher allows."""

    max_batch: int = 1024
    timeout_s: float = 30.0
    error_status: int = OK
    """Status of a method error: 200, or 400 as the original client answered (json-rpc.md 9, line 1)."""
    wording: ErrorWording = ErrorWording.ORIGINAL
    max_response_bytes: int = 64 * 1024 * 1024
    """Most of an answer that is put together before it is sent: of a batch, or of a result that is not streamed."""
    max_values: int = 262_144
    """Most values (numbers, texts, keys, arrays, objects) of one request: each takes up to some seventy bytes."""
    turns: FairScheduler = field(default_factory=FairScheduler)
    """In which order batches are worked off."""
    lane: Lane = field(default_factory=lambda: InlineLane("parse"))
    """Where large requests are read."""
    heavy: LargeRequests = field(default_factory=LargeRequests)
    """Which of them are at work."""
