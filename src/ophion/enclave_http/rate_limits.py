"""`SenderRates`: rate limits of the port for enclaves. Known members have their own limit, all others share one."""

from __future__ import annotations

import asyncio
from typing import Final

from ophion.enclave.peer_directory import Directory
from ophion.peers.token_bucket import TokenBucket
from ophion.runtime.clock import Clock

UNKNOWN_SENDERS: Final = b""
"""Account of all senders that have not proven a key."""
REQUEST_BYTES: Final = 16 * 1024
"""Bytes charged for each request in addition to its size. They cover the shared secret and database lookups."""
MEMBER_BYTES: Final = 4096
"""Bytes charged for each member of an unknown group. Validating a member's key takes a tenth of a millisecond."""
_BURST_BYTES: Final = 16 * 1024 * 1024
_BYTES_A_SECOND: Final = 4 * 1024 * 1024


class SenderRates:
    """Token buckets by enclave key."""

    def __init__(self, directory: Directory, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._shares: dict[bytes, TokenBucket] = {}

    async def pay(self, sender: bytes, amount: int) -> None:
        """Wait until the rate limit of a sender admits this many bytes."""
        known = self._directory.known()
        account = sender if sender in known else UNKNOWN_SENDERS
        if len(self._shares) > 2 * len(known) + 16:
            self._shares = {key: share for key, share in self._shares.items() if key in known or not key}
        share = self._shares.setdefault(account, TokenBucket(_BURST_BYTES, _BYTES_A_SECOND))
        now = self._clock.monotonic()
        if not share.spend(amount, now):
            await asyncio.sleep(-share.left(now) / _BYTES_A_SECOND)
