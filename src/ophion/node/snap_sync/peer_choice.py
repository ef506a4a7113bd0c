"""Chooses the peer that gets the next request for a part of the state.

A peer that does not have a state gets no further requests for this state. If no connected peer has the state, the
download fails with `StateGone`, because peers keep only the states of recent blocks.

The fastest free peer gets the request. Speed is the number of accounts, slots, codes or trie nodes a second. A peer
that responds slowly, or with few entries at a time, breaks no rule. Such a peer gets requests only while faster peers
are busy.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from math import inf
from typing import Final, TypeVar

from ophion.errors import DecodeError, OphionError
from ophion.native.exceptions import translated
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.eth.requests import RequestFailed
from ophion.peers.snap.peer import SnapPeer
from ophion.primitives.types import Hash32
from ophion.runtime.thread_pools import Lane

log = logging.getLogger(__name__)

MAX_OPEN: Final = 3
"""Maximum number of open requests to one peer."""
MAX_FAILURES: Final = 5
"""Number of consecutive failed requests after which a peer is disconnected."""
_SPEED_WEIGHT: Final = 0.3
"""Weight of the newest response in the moving average of a peer's speed."""
_MIN_SECONDS: Final = 0.001
_LOOK_S: Final = 0.05
_REPORT_S: Final = 10.0

T = TypeVar("T")


class StateGone(OphionError):
    """Raised when no connected peer has the state with this root."""

    def __init__(self, root: Hash32) -> None:
        super().__init__(f"no peer has the state 0x{root.hex()}")


class PeerChoice:
    """Sends each request for a part of the state to the fastest free peer, and verifies the response."""

    def __init__(self, usable: Callable[[], list[SnapPeer]]) -> None:
        """Create the choice. `usable` returns the connected peers that speak snap."""
        self._usable = usable
        self._busy: dict[SnapPeer, int] = {}
        self._failures: dict[SnapPeer, int] = {}
        self._speeds: dict[SnapPeer, float] = {}
        """Average number of entries a second, for each peer that has responded."""
        self._freed = asyncio.Event()
        self._without: dict[SnapPeer, set[Hash32]] = {}

    def forget(self) -> None:
        """Forget which peers did not have a state, so that they get requests again."""
        self._without.clear()

    async def ask(
        self,
        root: Hash32,
        send: Callable[[SnapPeer], Awaitable[bytes]],
        lane: Lane,
        read: Callable[[bytes], tuple[T, int] | None],
    ) -> T:
        """Send a request to a peer that has the state with this root, and return the value that `read` extracts from
        the response.

        `read` runs in `lane` (a worker thread). `read` returns the value and the number of entries in the response, or
        None if the peer does not have the state. If `read` raises `DecodeError`, the peer is disconnected, and the next
        peer gets the request. Raises `StateGone` if no peer is left.
        """
        clock = asyncio.get_running_loop()
        while True:
            peer = await self._free(root)
            self._busy[peer] = self._busy.get(peer, 0) + 1
            began = clock.time()
            try:
                response = await send(peer)
                seconds = clock.time() - began
                with translated():
                    found = await lane.run(lambda: read(response))  # noqa: B023
            except DecodeError as error:
                log.warning("peer disconnected: invalid part of a state peer=%r error=%s", peer, error)
                peer.peer.disconnect(DisconnectReason.BREACH, str(error))
                continue
            except RequestFailed as error:
                self._failed(peer, error)
                continue
            finally:
                self._busy[peer] -= 1
                self._freed.set()
            self._failures.pop(peer, None)
            if found is None:
                self._without.setdefault(peer, set()).add(root)
                continue
            peer.peer.reward()
            value, count = found
            self._measured(peer, count / max(seconds, _MIN_SECONDS))
            return value

    def _measured(self, peer: SnapPeer, speed: float) -> None:
        before = self._speeds.get(peer, speed)
        self._speeds[peer] = before + _SPEED_WEIGHT * (speed - before)

    def _failed(self, peer: SnapPeer, error: RequestFailed) -> None:
        failures = self._failures[peer] = self._failures.get(peer, 0) + 1
        log.info("request for a part of the state failed peer=%r error=%s", peer, error)
        if failures >= MAX_FAILURES:
            peer.peer.disconnect(DisconnectReason.TIMEOUT, f"{failures} requests without a response")

    async def _free(self, root: Hash32) -> SnapPeer:
        """Return the fastest peer that has the state and fewer than `MAX_OPEN` open requests. Waits for such a peer."""
        clock = asyncio.get_running_loop()
        reported = clock.time()
        while True:
            self._freed.clear()
            usable = self._usable()
            self._forget_closed(usable)
            able = [peer for peer in usable if root not in self._without.get(peer, ())]
            if usable and not able:
                raise StateGone(root)
            free = [peer for peer in able if self._busy.get(peer, 0) < MAX_OPEN]
            if free:
                return min(free, key=self._rank)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._freed.wait()
            if usable:
                reported = clock.time()
            elif clock.time() - reported >= _REPORT_S:
                reported = clock.time()
                log.warning(
                    "snap synchronisation waits for peers that serve states: none of the connected peers speaks snap/1."
                    " Start with --sync-mode=FULL if the network has no such node."
                )

    def _rank(self, peer: SnapPeer) -> tuple[int, float, int]:
        """Return the sort key of a peer: few failures, then high speed. A free peer without a measured speed comes
        first, so that its speed is measured.
        """
        busy = self._busy.get(peer, 0)
        if not busy and peer not in self._speeds:
            return self._failures.get(peer, 0), -inf, 0
        return self._failures.get(peer, 0), -self._speeds.get(peer, 0.0) / (busy + 1), busy

    def _forget_closed(self, usable: list[SnapPeer]) -> None:
        for table in (self._failures, self._without, self._speeds):
            for peer in [one for one in table if one not in usable]:
                table.pop(peer)
        for peer in [one for one, count in self._busy.items() if not count and one not in usable]:
            del self._busy[peer]
