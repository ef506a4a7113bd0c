"""`PayloadPush`: sends payloads and groups to one peer in batches, and tracks acknowledgements.

A window bounds the unacknowledged bytes. Further records wait in a queue, so that the send buffer does not overflow and
a slow peer stays connected.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from ophion.enclave.payload_exchange import EnclaveLinkLost, EnclaveRecord, RecordKind, RecordLabel
from ophion.peers.priv.messages import MAX_RECORDS, Ack

_WINDOW_BYTES: Final = 4 * 1024 * 1024
_BATCH_BYTES: Final = 256 * 1024
_MAX_BATCH: Final = MAX_RECORDS // 4

Push = asyncio.Future[str | None]


class PayloadPush:
    """Payloads and groups for one peer: queued, or sent and not acknowledged yet."""

    def __init__(self, send: Callable[[RecordKind, list[EnclaveRecord]], bool], now: Callable[[], float]) -> None:
        self._send = send
        self._now = now
        self._queue: deque[EnclaveRecord] = deque()
        self._waiting: dict[RecordLabel, list[Push]] = {}
        self._under_way: dict[RecordLabel, tuple[int, float]] = {}
        """Size and send time of each unacknowledged record."""
        self._bytes = 0
        self._is_planned = False
        self._is_over = False

    def put(self, entry: EnclaveRecord) -> Push:
        """Queue a record. The returned future resolves to None when the peer has stored the record durably, or to the
        reason of a refusal.
        """
        loop = asyncio.get_running_loop()
        push: Push = loop.create_future()
        if self._is_over:
            push.set_exception(EnclaveLinkLost())
            return push
        waiting = self._waiting.get(entry.label)
        if waiting is not None:  # the record is already queued or sent
            waiting.append(push)
            return push
        self._waiting[entry.label] = [push]
        self._queue.append(entry)
        if not self._is_planned:
            # send in the next loop iteration, so that all records of this iteration share one message
            self._is_planned = True
            loop.call_soon(self._flush)
        return push

    def acknowledged(self, acks: Iterable[Ack]) -> None:
        """Handle acknowledgements. Ignores acknowledgements of records that were not sent."""
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
        """Seconds since the oldest unacknowledged record was sent; 0 if every record is acknowledged."""
        for _, at in self._under_way.values():
            return self._now() - at
        return 0.0

    def fail_all(self) -> None:
        """Fail all pushes with `EnclaveLinkLost` after the connection has closed."""
        self._is_over = True
        for pushes in self._waiting.values():
            for push in pushes:
                if not push.done():
                    push.set_exception(EnclaveLinkLost())
                    # mark the exception as retrieved, because the caller may no longer wait for the push
                    push.exception()
        self._queue.clear()
        self._waiting.clear()
        self._under_way.clear()

    def _flush(self) -> None:
        self._is_planned = False
        while self._queue and self._bytes < _WINDOW_BYTES:
            kind, batch, size = self._queue[0].label.kind, list[EnclaveRecord](), 0
            while self._queue and self._queue[0].label.kind is kind and size < _BATCH_BYTES and len(batch) < _MAX_BATCH:
                entry = self._queue.popleft()
                batch.append(entry)
                size += len(entry.body)
                self._under_way[entry.label] = (len(entry.body), self._now())
            self._bytes += size
            if not self._send(kind, batch):
                return
