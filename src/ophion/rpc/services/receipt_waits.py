"""Requests that wait until a transaction is mined."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ophion.primitives.types import Hash32


class ReceiptWaits:
    """Waiting requests by transaction; `on_head` completes them."""

    def __init__(self) -> None:
        self._waiting: dict[Hash32, list[asyncio.Future[None]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    async def wait(self, hash: Hash32, timeout_s: float) -> None:
        """Wait until the transaction is mined or the timeout expires."""
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
        """Complete the requests whose transactions are mined."""
        for hash, waiters in self._waiting.items():
            if is_mined(hash):
                for waiter in waiters:
                    if not waiter.done():
                        waiter.set_result(None)
