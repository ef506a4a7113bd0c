"""Where raw transactions are decoded and their senders recovered: beside the loop in a node, at once in a test.

The thread belongs to the extension and never asks for the interpreter's lock. The loop hears of finished work through a
file descriptor: one wake-up for everything that is ready by then, a few microseconds a transaction on the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from ophion.native.transactions import Decoder, Transaction, decode_transactions

Decoded: TypeAlias = list[Transaction | str]
"""Each transaction, or why its bytes are none."""


class Decoding(Protocol):
    """Takes raw transactions under a number and gives them back decoded, in the order in which they came."""

    def listen(self, ready: Callable[[], None]) -> None:
        """Who is told, on the running loop, when there is something to collect."""

    def submit(self, number: int, raws: Sequence[bytes]) -> None:
        """Have transactions decoded; `RuntimeError` after `close`."""

    def collect(self) -> list[tuple[int, Decoded]]:
        """What is finished."""

    def close(self) -> None:
        """Take nothing more."""


class ThreadDecoding:
    """The decoding of a running node."""

    def __init__(self) -> None:
        self._decoder: Decoder | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_closed = False

    def listen(self, ready: Callable[[], None]) -> None:
        self._unhook()
        # the thread is started by the first who wants it: not every use of lanes has transactions
        self._decoder = self._decoder or Decoder()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._decoder.fd, ready)

    def submit(self, number: int, raws: Sequence[bytes]) -> None:
        if self._is_closed or self._decoder is None:
            raise RuntimeError("decoding has ended")
        self._decoder.submit(number, raws)

    def collect(self) -> list[tuple[int, Decoded]]:
        return [] if self._decoder is None else self._decoder.collect()

    def close(self) -> None:
        self._is_closed = True
        self._unhook()

    def _unhook(self) -> None:
        if self._loop is not None and self._decoder is not None and not self._loop.is_closed():
            self._loop.remove_reader(self._decoder.fd)
        self._loop = None


class InlineDecoding:
    """The decoding of a test: done when it is asked for, told in the next turn of the loop."""

    def __init__(self) -> None:
        self._ready: Callable[[], None] | None = None
        self._finished: list[tuple[int, Decoded]] = []

    def listen(self, ready: Callable[[], None]) -> None:
        self._ready = ready

    def submit(self, number: int, raws: Sequence[bytes]) -> None:
        if self._ready is not None and not self._finished:
            asyncio.get_running_loop().call_soon(self._ready)
        self._finished.append((number, decode_transactions(raws)))

    def collect(self) -> list[tuple[int, Decoded]]:
        finished, self._finished = self._finished, []
        return finished

    def close(self) -> None:
        self._ready = None
