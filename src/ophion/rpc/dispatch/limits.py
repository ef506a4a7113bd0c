"""Limits on one message (batch size, values, time, size of the answer), and the resources that process it."""

from __future__ import annotations

from msgspec import Struct, field

from ophion.rpc.dispatch.error_wording import ErrorWording
from ophion.rpc.dispatch.large_requests import LargeRequests
from ophion.rpc.transport.replies import OK
from ophion.runtime.fair_scheduler import FairScheduler
from ophion.runtime.thread_pools import InlineLane, Lane


class DispatchLimits(Struct, frozen=True):
    """Limits and resources of one dispatcher."""

    max_batch: int = 1024
    timeout_s: float = 30.0
    error_status: int = OK
    """HTTP status of a method error: 200, or 400 as in Pantheon 1.2 (json-rpc.md 9, line 1)."""
    wording: ErrorWording = ErrorWording.ORIGINAL
    max_response_bytes: int = 64 * 1024 * 1024
    """Maximum size of a batch answer, or of a single answer that is not streamed."""
    max_values: int = 262_144
    """Maximum number of JSON values in one request. Each value takes up to 72 bytes of memory."""
    scheduler: FairScheduler = field(default_factory=FairScheduler)
    """Divides the event loop between batches."""
    lane: Lane = field(default_factory=lambda: InlineLane("parse"))
    """The lane (worker thread) that parses large requests."""
    heavy: LargeRequests = field(default_factory=LargeRequests)
    """Limits the large requests that run at the same time."""
