"""Decodes raw transactions and recovers their senders: in a node on a thread of the Rust extension, in tests inline.

The thread never takes the GIL. Recovering eight senders together takes only two to three times as long as recovering
one. So transactions that arrive within a millisecond are submitted together. The thread signals finished work through a
file descriptor, with one wake-up for all finished transactions. The event loop spends a few microseconds per
transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import cached_property
from time import perf_counter
from typing import Any, Final, Protocol, TypeAlias

from ophion.native.transactions import Decoder, Transaction, decode_transactions
from ophion.runtime.block_priority import BlockPriority

Decoded: TypeAlias = list[Transaction | str]
"""For each raw transaction: the decoded transaction, or the reason why it is invalid."""

_MAX_COLLECTED: Final = 32
"""Maximum submissions collected in one step. The loop runs other tasks before it collects more."""

_BLOB_TYPE: Final = b"\x03"

_HELD_S: Final = 0.001
"""Maximum seconds that a transaction waits for other transactions."""


class TransactionDecoder(Protocol):
    """Decodes submissions and returns them in order of arrival. Only transactions with blobs may be returned later."""

    is_eager: bool
    """Whether a single submission is decoded on the event loop. Set on development nodes (decision 155)."""

    def listen(self, ready: Callable[[], None]) -> None:
        """Set the callback for finished submissions. The callback runs on the event loop of the submitter."""

    def submit(self, arrival: object, raws: Sequence[bytes], senders: bytes | None = None) -> None:
        """Decode the transactions of an arrival; raises `RuntimeError` after `close`. `senders` may have the addresses
        that probably signed the transactions, one after the other.
        """

    def collect(self) -> tuple[list[Any], Decoded]:
        """Return some finished arrivals and all their transactions. If more arrivals are finished, signals again."""

    def close(self) -> None:
        """Accept no more submissions."""


class ThreadTransactionDecoder:
    """Decodes in a thread of the Rust extension, as a running node does."""

    def __init__(self, block_priority: BlockPriority | None = None) -> None:
        """Create the decoder. While `block_priority` is on, finished submissions are not collected."""
        self._block_priority = BlockPriority() if block_priority is None else block_priority
        self._ready: Callable[[], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._count = 0
        """Number of submissions so far."""
        self._held_at = 0.0
        """Time at which the oldest held submission arrived; 0 when no submission is held."""
        self._is_starting = False
        """Whether the next iteration of the event loop submits the held transactions."""
        self.is_eager = False
        self._single: tuple[object, Sequence[bytes]] | None = None
        """A submission that came alone. The next iteration of the event loop decodes it, unless another submission
        arrives before.
        """
        self._in_thread = 0
        """Number of submissions that the thread has not returned."""

    def listen(self, ready: Callable[[], None]) -> None:
        self._unhook()
        self._ready = ready

    def submit(self, arrival: object, raws: Sequence[bytes], senders: bytes | None = None) -> None:
        if self._loop is None or not self._loop.is_running():
            self._hook()
        if self.is_eager and self._hold_single(arrival, raws):
            return
        self._submit(arrival, raws, senders)

    def _hold_single(self, arrival: object, raws: Sequence[bytes]) -> bool:
        """Hold a submission of one transaction until the next iteration of the event loop.

        Returns False if the caller must submit it now. A transaction that is held already is submitted first.
        """
        if self._single is not None:
            held, self._single = self._single, None
            self._submit(*held)
            return False
        if self._in_thread or len(raws) != 1 or raws[0][:1] == _BLOB_TYPE:
            return False
        self._single = (arrival, raws)
        self._loop.call_soon(self._signal_single)  # type: ignore[union-attr]  # `_loop` is set here
        return True

    def _signal_single(self) -> None:
        if self._single is not None and self._ready is not None:
            self._ready()

    def _submit(self, arrival: object, raws: Sequence[bytes], senders: bytes | None = None) -> None:
        self._count += 1
        self._in_thread += 1
        if not self._decoder.submit(arrival, raws, senders):
            self._held_at = 0.0
        elif not self._held_at:
            self._held_at = perf_counter()
            if not self._is_starting:
                self._is_starting = True
                self._loop.call_soon(self._start, self._decoder, 0)  # type: ignore[union-attr]  # `_loop` is set here

    def _start(self, decoder: Decoder, seen: int) -> None:
        """Submit the held transactions, unless more transactions arrived in the last iteration of the event loop."""
        if self._held_at and self._count != seen and perf_counter() - self._held_at < _HELD_S:
            asyncio.get_running_loop().call_soon(self._start, decoder, self._count)
            return
        self._is_starting, self._held_at = False, 0.0
        decoder.start()

    @cached_property
    def _decoder(self) -> Decoder:
        """Return the Rust extension's decoder. The first use starts its thread."""
        return Decoder()

    def collect(self) -> tuple[list[Any], Decoded]:
        if self._single is not None:
            (arrival, raws), self._single = self._single, None
            return [arrival], decode_transactions(raws)
        if self._block_priority.is_on:
            return [], []
        arrivals, decoded = self._decoder.collect(_MAX_COLLECTED)
        self._in_thread -= len(arrivals)
        return arrivals, decoded

    def close(self) -> None:
        self._is_closed = True
        self._unhook()

    def _hook(self) -> None:
        """Watch the decoder's file descriptor in the current event loop. Called at the first submission and when the
        loop changes.
        """
        self._unhook()
        if self._is_closed or self._ready is None:
            raise RuntimeError("decoding has ended")
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._decoder.fd, self._ready)

    def _unhook(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._decoder.fd)
        self._loop = None
        self._single = None
        # reset the state, because an ended event loop gets no more wake-ups
        self._is_starting, self._held_at = False, 0.0


class InlineTransactionDecoder:
    """Decodes in the calling thread, for tests. Calls back in the next iteration of the event loop."""

    is_eager = True

    def __init__(self) -> None:
        self._ready: Callable[[], None] | None = None
        self._arrivals: list[Any] = []
        self._decoded: Decoded = []

    def listen(self, ready: Callable[[], None]) -> None:
        self._ready = ready

    def submit(self, arrival: object, raws: Sequence[bytes], senders: bytes | None = None) -> None:
        if self._ready is not None and not self._arrivals:
            asyncio.get_running_loop().call_soon(self._ready)
        self._arrivals.append(arrival)
        self._decoded += decode_transactions(raws)

    def collect(self) -> tuple[list[Any], Decoded]:
        finished, self._arrivals, self._decoded = (self._arrivals, self._decoded), [], []
        return finished

    def close(self) -> None:
        self._ready = None
