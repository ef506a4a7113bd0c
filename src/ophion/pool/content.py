"""Listings and figures of the pool for the `txpool` methods."""

from __future__ import annotations

from msgspec import Struct

from ophion.pool.queue import PooledTransaction, Queue
from ophion.primitives.types import Address


class PoolStatistics(Struct, frozen=True):
    """The three figures of `txpool_clientStatistics`."""

    max_size: int
    local_count: int
    remote_count: int


class PoolContent(Struct, frozen=True):
    """Transactions by sender and nonce: executable (pending), or behind a nonce gap (queued)."""

    pending: dict[Address, dict[int, PooledTransaction]]
    queued: dict[Address, dict[int, PooledTransaction]]


def content_of(queue: Queue, sender: Address | None = None) -> PoolContent:
    """List the transactions of one sender, or of all senders."""
    senders = queue.senders
    chosen = senders if sender is None else {sender: senders[sender]} if sender in senders else {}
    content = PoolContent({}, {})
    for address, own in chosen.items():
        nonces = sorted(own.by_nonce)
        pending = {nonce: own.by_nonce[nonce] for nonce in nonces if nonce < own.end}
        queued = {nonce: own.by_nonce[nonce] for nonce in nonces if nonce >= own.end}
        if pending:
            content.pending[address] = pending
        if queued:
            content.queued[address] = queued
    return content
