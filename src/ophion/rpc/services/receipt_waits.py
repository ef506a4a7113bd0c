"""Requests that wait until a transaction is in a block."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ophion.primitives.types import Hash32


class ReceiptWaits:
    """Who waits for which transaction; told of every new head."""

    def __init__(self) -> None:
        self._waiting: dict[Hash32, list[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, hash: Hash32, timeout_s: float) -> None:
        """Return when the transaction is in a block, or when the time is up."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(hash, []).append(waiter)
        try:
            await asyncio.wait({waiter}, timeout=timeout_s)
        finally:
            left = [one for one in self._waiting[hash] if one is not waiter]
            if left:
                self._waiting[hash] = left
            else:
                del self._waiting[hash]

    def on_head(self, is_mined: Callable[[Hash32], bool]) -> None:
        """The chain has a new head: let those go on whose transactions are in it or before it."""
        for hash, waiters in self._waiting.items():
            if is_mined(hash):
                for waiter in waiters:
                    if not waiter.done():
                        waiter.set_result(None)
