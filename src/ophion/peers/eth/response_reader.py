"""Responses to requests for headers, bodies, receipts and pooled transactions (networking.md 3.8).

The functions only read the database and run in a worker thread. The number of items in a response is bounded, and so is
its size (about 2 MiB). Bodies and receipts stop at the first missing block, because the requester matches the items of
a response with its request by position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from ophion.chain.chain import Chain
from ophion.native.exceptions import NotDownloaded
from ophion.native.wire import body_rlp
from ophion.peers.eth.messages import MAX_MESSAGE, GetHeaders
from ophion.peers.eth.response_validation import wrapped
from ophion.pool.pool import TxPool
from ophion.primitives import rlp
from ophion.primitives.types import HASH_LENGTH, Hash32

T = TypeVar("T")

MAX_HEADERS: Final = 512
MAX_BODIES: Final = 256
MAX_RECEIPTS: Final = 256
MAX_TRANSACTIONS: Final = 256
SOFT_LIMIT: Final = 2 * 1024 * 1024
_HARD_LIMIT: Final = MAX_MESSAGE - 64 * 1024
"""Limit of the items in a response, in bytes. Leaves 64 KiB for the encoding around the items."""


class ResponseReader:
    """Reads responses from one chain and one pool."""

    def __init__(self, chain: Chain, pool: TxPool) -> None:
        self._store = chain.store
        self._pool = pool

    def headers(self, request: GetHeaders) -> bytes:
        """Return the requested headers that this node has, encoded."""
        while True:
            head = self._store.head()
            found = _bounded(self._headers(request, 0 if head is None else head[1]), min(request.limit, MAX_HEADERS))
            # if a reorganisation replaced the head during the read, the headers may not be linked: read them again
            if head is None or self._store.canonical_hash(head[1]) == head[0]:
                return found

    def bodies(self, hashes: list[Hash32]) -> bytes:
        """Return the bodies of the blocks with these hashes, up to the first missing block."""
        return _bounded(_until_missing(hashes, self._body), MAX_BODIES)

    def receipts(self, hashes: list[Hash32], with_bloom: bool) -> bytes:
        """Return the receipts of the blocks with these hashes, up to the first missing block."""
        one = wrapped if with_bloom else _receipt_without_bloom

        def of_block(block: Hash32) -> bytes | None:
            found = _downloaded(self._store.raw_receipts, block)
            return None if found is None else rlp.list_of([one(receipt) for receipt in found])

        return _bounded(_until_missing(hashes, of_block), MAX_RECEIPTS)

    def pooled(self, hashes: list[Hash32]) -> bytes:
        """Return the requested transactions that are in the pool. Runs on the event loop, which owns the pool."""
        items = (item for hash in hashes if (item := self._pool.get(hash)) is not None)
        found = (raw for item in items if (raw := self._pool.network_form(item)) is not None)
        return _bounded(map(wrapped, found), MAX_TRANSACTIONS)

    def _headers(self, request: GetHeaders, head: int) -> Iterator[bytes]:
        store, distance = self._store, request.skip + 1
        if isinstance(request.start, bytes):
            start = store.number_of(request.start)
            if start is None:
                return
            if store.canonical_hash(start) != request.start:
                yield from self._side_branch(request.start, start, request)
                return
        else:
            start = request.start
        step = -distance if request.reverse else distance
        number = start
        while 0 <= number <= head:
            hash = store.canonical_hash(number)
            header = None if hash is None else store.header(hash)
            if header is None:
                return
            yield header
            number += step

    def _side_branch(self, hash: Hash32, number: int, request: GetHeaders) -> Iterator[bytes]:
        """Yield the header of a non-canonical block and, if the request has `reverse` set, the headers of its
        ancestors.
        """
        store, distance, left = self._store, request.skip + 1, 0
        while (header := store.header(hash)) is not None:
            if left == 0:
                yield header
                if not request.reverse:
                    return
                left = distance
            hash, number = _parent_hash(header), number - 1
            left -= 1
            if number < 0:
                return
            if store.canonical_hash(number) == hash:
                rest = GetHeaders(number - left, MAX_HEADERS, request.skip, reverse=True)
                yield from self._headers(rest, number)
                return

    def _body(self, block: Hash32) -> bytes | None:
        found = _downloaded(self._store.block, block)
        return None if found is None else body_rlp(found)


def _downloaded(read: Callable[[Hash32], T | None], block: Hash32) -> T | None:
    """Read a part of a block. Returns None if the block is unknown, or if only its header is downloaded."""
    try:
        return read(block)
    except NotDownloaded:
        return None


def _until_missing(hashes: list[Hash32], read: Callable[[Hash32], bytes | None]) -> Iterator[bytes]:
    for hash in hashes:
        found = read(hash)
        if found is None:
            return
        yield found


def _bounded(items: Iterable[bytes], max_items: int) -> bytes:
    """Encode the first items as a list, within the item limit and the size limit of one message."""
    chosen: list[bytes] = []
    size = 0
    if max_items > 0:
        for item in items:
            size += len(item)
            if size > _HARD_LIMIT:
                break
            chosen.append(item)
            if len(chosen) >= max_items or size >= SOFT_LIMIT:
                break
    return rlp.list_of(chosen)


def _parent_hash(header: bytes) -> Hash32:
    start = rlp.head(header, 0)[1] + 1
    return header[start : start + HASH_LENGTH]


def _receipt_without_bloom(raw: bytes) -> bytes:
    kind = 0 if raw[0] >= 0xC0 else raw[0]
    outcome, gas, _, logs = rlp.split_list(raw if kind == 0 else raw[1:], 4)
    return rlp.list_of((rlp.encode_int(kind), outcome, gas, logs))
