"""`Pushes`: sends parcels (payload and group records) to one peer in batches, and tracks acknowledgements.

A window bounds the unacknowledged bytes. Further parcels wait in this queue. So the send buffer does not overflow, and
a slow peer stays connected.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from ophion.enclave.payload_exchange import Kind, Label, LineLost, Parcel
from ophion.peers.priv.messages import MAX_PARCELS, Ack

_WINDOW_BYTES: Final = 4 * 1024 * 1024
_BATCH_BYTES: Final = 256 * 1024
_MAX_BATCH: Final = MAX_PARCELS // 4

Push = asyncio.Future[str | None]


class Pushes:
    """Queued and unacknowledged parcels (payload and group records) of one peer."""

    def __init__(self, send: Callable[[Kind, list[Parcel]], bool], now: Callable[[], float]) -> None:
        self._send = send
        self._now = now
        self._queue: deque[Parcel] = deque()
        self._waiting: dict[Label, list[Push]] = {}
        self._under_way: dict[Label, tuple[int, float]] = {}
        """Size and send time of each unacknowledged parcel."""
        self._bytes = 0
        self._is_planned = False
        self._is_over = False

    def put(self, parcel: Parcel) -> Push:
        """Queue a parcel. The returned future resolves to None when the peer has stored it durably, or to the reason of
        a refusal.
        """
        loop = asyncio.get_running_loop()
        push: Push = loop.create_future()
        if self._is_over:
            push.set_exception(LineLost())
            return push
        waiting = self._waiting.get(parcel.label)
        if waiting is not None:  # the queue already holds this parcel
            waiting.append(push)
            return push
        self._waiting[parcel.label] = [push]
        self._queue.append(parcel)
        if not self._is_planned:
            # send in the next loop iteration, so that all parcels of this iteration share one message
            self._is_planned = True
            loop.call_soon(self._flush)
        return push

    def acknowledged(self, acks: Iterable[Ack]) -> None:
        """Handle acknowledgements. Ignores acknowledgements of parcels that were not sent."""
        for label, reason in acks:
            left = self._under_way.pop(label, None)
            if left is None:
                continue
            self._bytes -= left[0]
            for push in self._waiting.pop(label, ()):
                if not push.done():
                    push.set_result(reason or None)
        self._flush()

    def oldest_s(self) -> float:
        """Seconds since the oldest unacknowledged parcel was sent; 0 if every parcel is acknowledged."""
        for _, at in self._under_way.values():
            return self._now() - at
        return 0.0

    def lose(self) -> None:
        """Fail all pushes with `LineLost` after the connection has closed."""
        self._is_over = True
        for pushes in self._waiting.values():
            for push in pushes:
                if not push.done():
                    push.set_exception(LineLost())
                    # mark the exception as retrieved, because the caller may no longer wait for the push
                    push.exception()
        self._queue.clear()
        self._waiting.clear()
        self._under_way.clear()

    def _flush(self) -> None:
        self._is_planned = False
        while self._queue and self._bytes < _WINDOW_BYTES:
            kind, batch, size = self._queue[0].label.kind, list[Parcel](), 0
            while self._queue and self._queue[0].label.kind is kind and size < _BATCH_BYTES and len(batch) < _MAX_BATCH:
                parcel = self._queue.popleft()
                batch.append(parcel)
                size += len(parcel.body)
                self._under_way[parcel.label] = (len(parcel.body), self._now())
            self._bytes += size
            if not self._send(kind, batch):
                return
