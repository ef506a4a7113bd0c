"""All pooled transactions as one JSON array, streamed if the pool is large.

A short list is rendered on the event loop. A long list is rendered piece by piece in a worker thread, as fast as the
client reads (transport/streaming.py). Between pieces only hashes are stored, so a slow reader keeps no transaction in
memory. Transactions that leave the pool before they are rendered are omitted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from ophion.pool.pool import TxPool
from ophion.pool.queue import PooledTransaction
from ophion.primitives.types import Hash32
from ophion.rpc.errors import RESPONSE_TOO_LARGE
from ophion.rpc.services.context import RpcContext
from ophion.rpc.transport.streaming import StreamedResult, opened

_MAX_INLINE_COUNT: Final = 64
_MAX_INLINE_BYTES: Final = 64 * 1024
"""Maximum size of a list that is rendered on the event loop, which takes about a millisecond."""
_PIECE: Final = 256 * 1024

T = TypeVar("T")


class PoolListing:
    """Renders the JSON array of pooled transactions piece by piece. Implements `streaming.Source`."""

    def __init__(self, pool: TxPool, hashes: Iterable[Hash32]) -> None:
        self._pool = pool
        self._hashes = deque(hashes)
        self._separator = b"["
        self._left = memoryview(b"")
        """Rendered bytes that `next` has not returned yet. A transaction can be longer than one piece."""
        self._has_ended = False

    def next(self) -> bytes | None:
        """Return the next piece of the JSON array; None after the last piece."""
        if not self._left:
            if self._has_ended:
                return None
            self._left = memoryview(self._rendered())
        piece, self._left = bytes(self._left[:_PIECE]), self._left[_PIECE:]
        return piece

    def _rendered(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while self._hashes and size < _PIECE:
            item = self._pool.get(self._hashes.popleft())
            if item is not None:
                text = item.transaction.json()
                parts += (self._separator, text)
                size += len(text)
                self._separator = b","
        if not self._hashes:
            self._has_ended = True
            parts.append(b"[]" if self._separator == b"[" else b"]")
        return b"".join(parts)

    def close(self) -> None:
        """Drop the transactions that are not rendered yet."""
        self._hashes.clear()
        self._left, self._has_ended = memoryview(b""), True


async def listed(ctx: RpcContext, items: Sequence[PooledTransaction]) -> bytes | StreamedResult:
    """Return the JSON array of these pooled transactions, streamed if it is long."""
    source = PoolListing(ctx.pool, [item.hash for item in items])
    if _is_small(items):
        text = source.next()
        assert text is not None, "so few are one piece"
        return text
    return await opened(ctx.lanes.read, ctx.streams, lambda: source)


async def rendered(ctx: RpcContext, items: Sequence[PooledTransaction], render: Callable[[], T]) -> T:
    """Return the result of `render`, a list of pooled transactions that is not streamed. Raises `RpcError` if the list
    would be too long.
    """
    if _is_small(items):
        return render()
    # estimate the size of the response: hexadecimal text doubles the bytes
    if sum(2 * item.size for item in items) > ctx.streams.max_bytes:
        raise RESPONSE_TOO_LARGE()
    return await ctx.lanes.read.run(render)


def _is_small(items: Sequence[PooledTransaction]) -> bool:
    return len(items) <= _MAX_INLINE_COUNT and sum(item.size for item in items) <= _MAX_INLINE_BYTES
