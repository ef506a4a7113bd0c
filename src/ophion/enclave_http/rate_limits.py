"""`SenderRates`: rate limits of the enclave's HTTP port for other enclaves. Each sender with a known key has its own
limit; all other senders share one limit.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

from ophion.enclave.peer_directory import PeerDirectory
from ophion.errors import OphionError
from ophion.peers.token_bucket import TokenBucket
from ophion.runtime.clock import Clock

UNKNOWN_SENDERS: Final = b""
"""Key of the rate limit that all senders without a proven key share."""
REQUEST_BYTES: Final = 16 * 1024
"""Bytes charged for each request in addition to its size, for computing the shared secret and for database lookups."""
MEMBER_BYTES: Final = 4096
"""Bytes charged for each member of an unknown group. Validating a member's key takes a tenth of a millisecond."""
MAX_UNKNOWN_WAITING: Final = 64
"""Maximum number of waiting requests of unknown senders, so that slots remain for the requests of known senders."""
MAX_WAITING_OF_ONE: Final = 32
"""Maximum number of waiting requests of one known sender."""
MAX_WAITING: Final = 192
"""Maximum number of waiting requests of all senders. The limit leaves slots for requests that are within their rate
limit and do not wait.
"""
MAX_WAIT_S: Final = 10.0
"""Maximum seconds that a request waits. A request that would wait longer is refused and not charged."""
_BURST_BYTES: Final = 16 * 1024 * 1024
_BYTES_A_SECOND: Final = 4 * 1024 * 1024


class RateExceeded(OphionError):
    """Raised when the rate limit of a sender is used up."""

    transient = True

    def __init__(self) -> None:
        super().__init__("too many requests")


class SenderRates:
    """Token buckets by enclave key."""

    def __init__(self, directory: PeerDirectory, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._shares: dict[bytes, TokenBucket] = {}
        self._waiting: Counter[bytes] = Counter()
        """Number of waiting requests, by key of the rate limit."""

    async def charge(self, sender: bytes, amount: int) -> None:
        """Wait until the rate limit of a sender admits this many bytes. Raises `RateExceeded` if that takes too long,
        or if too many requests wait.
        """
        known = self._directory.known()
        account = sender if sender in known else UNKNOWN_SENDERS
        if len(self._shares) > 2 * len(known) + 16:
            self._shares = {key: share for key, share in self._shares.items() if key in known or not key}
        share = self._shares.setdefault(account, TokenBucket(_BURST_BYTES, _BYTES_A_SECOND))
        wait_s = (amount - share.left(self._clock.monotonic())) / _BYTES_A_SECOND
        if wait_s <= 0:
            share.spend(amount, self._clock.monotonic())
            return
        most = MAX_UNKNOWN_WAITING if account == UNKNOWN_SENDERS else MAX_WAITING_OF_ONE
        if wait_s > MAX_WAIT_S or self._waiting[account] >= most or self._waiting.total() >= MAX_WAITING:
            raise RateExceeded
        share.spend(amount, self._clock.monotonic())
        self._waiting[account] += 1
        try:
            await asyncio.sleep(wait_s)
        finally:
            self._waiting[account] -= 1
            if not self._waiting[account]:
                del self._waiting[account]
