"""Requests to one peer, matched with their responses by id and message code (networking.md 3.6).

At most five requests are open, because other clients refuse more; further callers wait. A request returns the encoded
body of its response or raises `RequestFailed`. Late responses are ignored. Unsolicited responses are a protocol breach.
If a request is cancelled and no response arrives within its time limit, the request counts as timed out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ophion.errors import OphionError
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.field_decoding import with_id
from ophion.peers.eth.messages import ANSWERS, Code

TIMEOUT_S: Final = 5.0
MAX_OPEN: Final = 5
_MAX_LATE: Final = 64
"""Limit of timed-out requests that are remembered. Their late responses are ignored."""


class RequestFailed(OphionError):
    """Raised when a request to a peer gets no usable response."""

    def __init__(self, what: str, why: str) -> None:
        self.what = what
        self.why = why
        super().__init__(f"{what}: {why}")


class RequestTimedOut(RequestFailed):
    """Raised when the response does not arrive before the timeout."""

    def __init__(self, what: str) -> None:
        super().__init__(what, f"no response within {TIMEOUT_S:g} s")


class _Open(Struct):
    answer: Code
    waiter: asyncio.Future[bytes]


class Requests:
    """The open requests to one peer."""

    def __init__(
        self,
        send: Callable[[Code, bytes], bool],
        timeout_s: float = TIMEOUT_S,
        cancelled_timed_out: Callable[[], None] = lambda: None,
    ) -> None:
        """Create the requests of a peer. `cancelled_timed_out` is called when a cancelled request gets no response
        before its timeout.
        """
        self._send = send
        self._cancelled_timed_out = cancelled_timed_out
        self._timeout_s = timeout_s
        self._slots = asyncio.Semaphore(MAX_OPEN)
        self._open: dict[int, _Open] = {}
        self._late: dict[int, Code] = {}
        self._next_id = 1
        self._is_closed = False
        self.waiting = 0
        """Number of callers that wait for a free request slot."""

    def __len__(self) -> int:
        """Number of open requests to the peer."""
        return len(self._open)

    async def ask(self, code: Code, encode: Callable[[int], bytes]) -> bytes:
        """Send a request and wait for the encoded body of its response. `encode` builds the request from its id."""
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        try:
            if self._is_closed:
                raise RequestFailed(code.label, "the peer has disconnected")
            request_id = self._next_id
            self._next_id += 1
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[bytes] = loop.create_future()
            self._open[request_id] = _Open(ANSWERS[code], waiter)
            end = loop.time() + self._timeout_s
            try:
                if not self._send(code, encode(request_id)):
                    raise RequestFailed(code.label, "the peer has disconnected")
                async with asyncio.timeout(self._timeout_s):
                    return await waiter
            except TimeoutError:
                raise RequestTimedOut(code.label) from None
            except asyncio.CancelledError:
                loop.call_at(end, self._check_cancelled, request_id)
                raise
            finally:
                if self._open.pop(request_id, None) is not None:
                    self._expect_late(request_id, ANSWERS[code])
        finally:
            self._slots.release()

    def answered(self, code: Code, payload: bytes) -> None:
        """Complete the request that a response belongs to. Raises `PeerMisbehaved` for an unsolicited response."""
        if not any(found.answer is code for found in self._open.values()) and code not in self._late.values():
            raise PeerMisbehaved(DisconnectReason.BREACH, f"unsolicited {code.label}")
        request_id, body = with_id(payload, code.label)
        found = self._open.get(request_id)
        if found is not None and found.answer is code:
            del self._open[request_id]
            if not found.waiter.done():
                found.waiter.set_result(body)
        elif self._late.get(request_id) is code:
            del self._late[request_id]
        else:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"unsolicited {code.label}")

    def close(self) -> None:
        """Fail all open requests after the peer has disconnected."""
        self._is_closed = True
        for found in self._open.values():
            if not found.waiter.done():
                found.waiter.set_exception(RequestFailed(found.answer.label, "the peer has disconnected"))
        self._open.clear()
        # break the reference cycles with the peer, so that Python frees the peer without a garbage collection
        self._send = _send_to_closed_peer
        self._cancelled_timed_out = _ignore

    def _expect_late(self, request_id: int, answer: Code) -> None:
        self._late[request_id] = answer
        if len(self._late) > _MAX_LATE:
            del self._late[next(iter(self._late))]

    def _check_cancelled(self, request_id: int) -> None:
        if request_id in self._late:
            self._cancelled_timed_out()


def _ignore() -> None:
    pass


def _send_to_closed_peer(code: Code, payload: bytes) -> bool:
    return False
