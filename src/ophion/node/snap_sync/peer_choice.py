"""Which peer gets a request for a part of the state.

A peer that does not have the state is not asked for it again. If no connected peer has it, the state is gone: peers
keep the states of recent blocks only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
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
"""Open requests to one peer."""
MAX_FAILURES: Final = 5
"""Failed requests in a row after which a peer is disconnected."""
_LOOK_S: Final = 0.05
_REPORT_S: Final = 10.0

T = TypeVar("T")


class StateGone(OphionError):
    """Raised when no connected peer has the state."""

    def __init__(self, root: Hash32) -> None:
        super().__init__(f"no peer has the state 0x{root.hex()}")


class PeerChoice:
    """Sends requests to peers and verifies the responses."""

    def __init__(self, usable: Callable[[], list[SnapPeer]]) -> None:
        """`usable` returns the connected peers."""
        self._usable = usable
        self._busy: dict[SnapPeer, int] = {}
        self._failures: dict[SnapPeer, int] = {}
        self._without: dict[SnapPeer, set[Hash32]] = {}

    def forget(self) -> None:
        """Ask peers again that did not have a state."""
        self._without.clear()

    async def ask(
        self, root: Hash32, send: Callable[[SnapPeer], Awaitable[bytes]], lane: Lane, read: Callable[[bytes], T | None]
    ) -> T:
        """Send a request to a peer that has the state, and return what `read` makes of the response.

        `read` runs in the lane. It returns None if the peer does not have the state, and raises an error if the
        response is invalid. Such a peer is disconnected, and the next one is asked. Raises `StateGone`.
        """
        while True:
            peer = await self._free(root)
            self._busy[peer] = self._busy.get(peer, 0) + 1
            try:
                response = await send(peer)
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
            self._failures.pop(peer, None)
            if found is None:
                self._without.setdefault(peer, set()).add(root)
                continue
            peer.peer.reward()
            return found

    def _failed(self, peer: SnapPeer, error: RequestFailed) -> None:
        failures = self._failures[peer] = self._failures.get(peer, 0) + 1
        log.info("request for a part of the state failed peer=%r error=%s", peer, error)
        if failures >= MAX_FAILURES:
            peer.peer.disconnect(DisconnectReason.TIMEOUT, f"{failures} requests without a response")

    async def _free(self, root: Hash32) -> SnapPeer:
        """Return the peer with the fewest open requests. Waits for peers."""
        waited = 0.0
        while True:
            usable = self._usable()
            self._forget_closed(usable)
            able = [peer for peer in usable if root not in self._without.get(peer, ())]
            if usable and not able:
                raise StateGone(root)
            free = [peer for peer in able if self._busy.get(peer, 0) < MAX_OPEN]
            if free:
                return min(free, key=lambda peer: (self._failures.get(peer, 0), self._busy.get(peer, 0)))
            await asyncio.sleep(_LOOK_S)
            waited += _LOOK_S
            if not usable and waited >= _REPORT_S:
                waited = 0.0
                log.warning("snap synchronisation waits for peers that serve states")

    def _forget_closed(self, usable: list[SnapPeer]) -> None:
        for table in (self._failures, self._without):
            for peer in [one for one in table if one not in usable]:
                table.pop(peer)
        for peer in [one for one, count in self._busy.items() if not count and one not in usable]:
            del self._busy[peer]
