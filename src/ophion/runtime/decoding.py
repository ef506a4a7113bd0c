"""Where raw transactions are decoded and their senders recovered: beside the loop in a node, at once in a test.

The thread belongs to the extension and never asks for the interpreter's lock. Eight senders take it two or three
times as long as one, so transactions that follow each other closely go to it together: as long as each turn of the loop
brings another, and for a millisecond at most. The loop hears of finished work through a file descriptor: one wake-up
for everything that is ready by then, a few microseconds a transaction on the loop.
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
"""Each transaction, or why its bytes are none."""

_MOST: Final = 32
"""Submissions that are collected in one go: the loop looks after others before it goes on with the rest."""

_HELD_S: Final = 0.001
"""So long does a transaction wait for others at most."""


class Decoding(Protocol):
    """Takes what arrives and gives it back with its transactions decoded, in the order in which it came; only what has
    blobs may come later."""

    def listen(self, ready: Callable[[], None]) -> None:
        """Who is told, on the loop of whoever submits, when there is something to collect."""

    def submit(self, arrival: object, raws: Sequence[bytes]) -> None:
        """Have the transactions of an arrival decoded; `RuntimeError` after `close`."""

    def collect(self) -> tuple[list[Any], Decoded]:
        """Arrivals that are finished, or some of them, and the transactions of all of those; who listens is told again
        of the rest."""

    def close(self) -> None:
        """Take nothing more."""


class ThreadDecoding:
    """The decoding of a running node."""

    def __init__(self, haste: BlockPriority | None = None) -> None:
        """In `haste` nothing is collected: it is there afterwards."""
        self._haste = BlockPriority() if haste is None else haste
        self._ready: Callable[[], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False
        self._count = 0
        """Submissions so far."""
        self._held_at = 0.0
        """Since when some wait for others that may come with them; 0 where none do."""
        self._is_starting = False
        """Whether the next turn of the loop looks after those."""

    def listen(self, ready: Callable[[], None]) -> None:
        self._unhook()
        self._ready = ready

    def submit(self, arrival: object, raws: Sequence[bytes]) -> None:
        if self._loop is None or not self._loop.is_running():
            self._hook()
        self._count += 1
        if not self._decoder.submit(arrival, raws):
            self._held_at = 0.0
        elif not self._held_at:
            self._held_at = perf_counter()
            if not self._is_starting:
                self._is_starting = True
                self._loop.call_soon(self._start, self._decoder, 0)  # type: ignore[union-attr]  # hooked

    def _start(self, decoder: Decoder, seen: int) -> None:
        """Have what is held decoded, unless the last turn has brought more of it."""
        if self._held_at and self._count != seen and perf_counter() - self._held_at < _HELD_S:
            asyncio.get_running_loop().call_soon(self._start, decoder, self._count)
            return
        self._is_starting, self._held_at = False, 0.0
        decoder.start()

    @cached_property
    def _decoder(self) -> Decoder:
        """With its thread, which the first who wants it starts: not every use of lanes has transactions."""
        return Decoder()

    def collect(self) -> tuple[list[Any], Decoded]:
        return ([], []) if self._haste.is_on else self._decoder.collect(_MOST)

    def close(self) -> None:
        self._is_closed = True
        self._unhook()

    def _hook(self) -> None:
        """The first submission, or the first on another loop than before."""
        self._unhook()
        if self._is_closed or self._ready is None:
            raise RuntimeError("decoding has ended")
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._decoder.fd, self._ready)

    def _unhook(self) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._decoder.fd)
        self._loop = None
        self._is_starting, self._held_at = False, 0.0  # a loop that has ended tells the thread nothing more


class InlineDecoding:
    """The decoding of a test: done when it is asked for, told in the next turn of the loop."""

    def __init__(self) -> None:
        self._ready: Callable[[], None] | None = None
        self._arrivals: list[Any] = []
        self._decoded: Decoded = []

    def listen(self, ready: Callable[[], None]) -> None:
        self._ready = ready

    def submit(self, arrival: object, raws: Sequence[bytes]) -> None:
        if self._ready is not None and not self._arrivals:
            asyncio.get_running_loop().call_soon(self._ready)
        self._arrivals.append(arrival)
        self._decoded += decode_transactions(raws)

    def collect(self) -> tuple[list[Any], Decoded]:
        finished, self._arrivals, self._decoded = (self._arrivals, self._decoded), [], []
        return finished

    def close(self) -> None:
        self._ready = None
