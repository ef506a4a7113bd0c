"""Measures how fast peers deliver, so that slow peers do not delay synchronisation.

A peer may answer every request correctly, but just before the time limit or with one item only. Such a peer breaks no
rule. `HelperSpeed` finds the peers whose responses are late compared with those of other peers. `TargetSpeed` measures
for how long the import has waited for the target.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable
from typing import Any, Final, TypeVar

from msgspec import Struct

from ophion.peers.eth.peer import EthPeer

PATIENCE_S: Final = 1.0
"""Seconds for which the import may wait for the target before another peer is tried."""
_RECOVERY: Final = 0.5
"""Seconds of waiting that one second of import cancels."""
_LATE_S: Final = 0.5
"""Minimum seconds after which a response counts as late."""
_FIRST_LATE_S: Final = 0.75
"""Minimum seconds after which a response counts as late, while no peer has answered yet."""
_LATE_FACTOR: Final = 4.0
"""A response is late after this multiple of the mean duration of the fastest peer."""
_SLOW_S: Final = 30.0
"""Seconds for which a slow peer gets no further requests."""
_NEWCOMER_S: Final = 10.0
"""Minimum seconds between the first requests to two peers that connect during a download."""
_WEIGHT: Final = 0.25
"""Weight of the last duration in the mean duration of a peer."""

T = TypeVar("T")


class _Fetch(Struct, eq=False):
    """A request to a peer for headers or bodies, with the timeout that ends the request early."""

    peer: EthPeer
    began: float
    timeout: asyncio.Timeout


class HelperSpeed:
    """The speed of the peers that serve one download."""

    def __init__(self, peers: Iterable[EthPeer]) -> None:
        """Create the measurement. `peers` are connected when the download begins."""
        self._known = set(peers)
        self._slow_until: dict[EthPeer, float] = {}
        self._mean_s: dict[EthPeer, float] = {}
        self._open: dict[_Fetch, None] = {}
        self._next_newcomer_at = 0.0

    async def run(self, peer: EthPeer, request: Coroutine[Any, Any, T]) -> T:
        """Run a request to a peer. Raises `TimeoutError` when the peer is much slower than other peers."""
        now = asyncio.get_running_loop().time
        fetch = _Fetch(peer, now(), asyncio.timeout(None))
        self._open[fetch] = None
        try:
            async with fetch.timeout:
                answer = await request
        finally:
            self._open.pop(fetch, None)
        duration = now() - fetch.began
        mean = self._mean_s.get(peer, duration)
        self._mean_s[peer] = mean + _WEIGHT * (duration - mean)
        return answer

    def mark_slow(self, peer: EthPeer, now: float) -> None:
        """Request nothing from a peer for some time, unless no faster peer is left."""
        self._slow_until[peer] = now + _SLOW_S
        self._mean_s.pop(peer, None)

    def usable(self, peers: Collection[EthPeer], now: float) -> list[EthPeer]:
        """Return the peers to use: no slow peers, and one new peer per `_NEWCOMER_S` seconds. If none is left, all
        peers.
        """
        fast = [peer for peer in peers if self._slow_until.get(peer, 0.0) <= now]
        known = [peer for peer in fast if peer in self._known]
        if known and len(known) < len(fast) and now >= self._next_newcomer_at:
            # a peer that connects during the download may be slow, so only one such peer per `_NEWCOMER_S` gets its
            # first request
            self._next_newcomer_at = now + _NEWCOMER_S
            newcomer = next(peer for peer in fast if peer not in self._known)
            self._known.add(newcomer)
            known.append(newcomer)
        return known or fast or list(peers)

    def cancel_late(self, peers: Collection[EthPeer], now: float) -> bool:
        """Cancel the late requests and mark their peers as slow, if a faster peer is left among `peers`. Returns
        whether a request was cancelled.
        """
        best = min(self._mean_s.values(), default=None)
        limit_s = _FIRST_LATE_S if best is None else max(_LATE_S, _LATE_FACTOR * best)
        late = [fetch for fetch in self._open if now - fetch.began >= limit_s]
        slow = {fetch.peer for fetch in late}
        if not late or all(peer in slow or self._slow_until.get(peer, 0.0) > now for peer in peers):
            return False
        for peer in slow:
            self.mark_slow(peer, now)
        for fetch in tuple(self._open):
            if fetch.peer in slow:
                del self._open[fetch]
                fetch.timeout.reschedule(now)
        return True


class TargetSpeed:
    """Measures how long the import of one download has waited for blocks."""

    def __init__(self) -> None:
        self._waited_s = 0.0

    def record(self, seconds: float, is_importing: bool) -> None:
        """Record the seconds of an import, or the seconds in which the import waited for blocks."""
        change = -_RECOVERY * seconds if is_importing else seconds
        self._waited_s = max(0.0, self._waited_s + change)

    def reset(self) -> None:
        """Forget the time waited so far. Called when the import waited for a slow helper, not for the target."""
        self._waited_s = 0.0

    @property
    def is_slow(self) -> bool:
        """Whether another peer should be tried as target."""
        return self._waited_s >= PATIENCE_S
