"""Reading answers: decoded, and held against what was asked. Plain functions, called in a lane.

`PeerMisbehaved` for what no honest node sends: headers that do not follow each other, more items than were asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from typing import Final

from msgspec import Struct

from ophion.chain.validation import check_belongs
from ophion.consensus.engine import Engine
from ophion.errors import DecodeError, InvalidBlock
from ophion.native.crypto import keccak256
from ophion.native.exceptions import InvalidBody, NativeError
from ophion.native.transactions import Body
from ophion.native.wire import split_bodies, split_list, split_transactions
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.messages import MAX_HEADER_BYTES, GetHeaders
from ophion.pool.admission import BLOB_TYPE
from ophion.primitives import rlp
from ophion.primitives.block import HashedHeader, Header
from ophion.primitives.types import Hash32

_MIN_TRANSACTION_BYTES: Final = 56
"""What the two random numbers of a signature make certain, on average over many transactions."""
_FEW_TRANSACTIONS: Final = 64
"""So many may be shorter."""


def read_headers(body: bytes, request: GetHeaders, engine: Engine) -> list[HashedHeader]:
    """The headers of an answer, held against the request."""
    with decoding("headers"):
        encoded = split_list(body, request.limit)
    longest = max(map(len, encoded), default=0)
    if longest > MAX_HEADER_BYTES:
        raise _wrong(f"a header of {longest} bytes")
    try:
        headers = [engine.hashed(Header.decode(item)) for item in encoded]
    except InvalidBlock as error:
        raise _wrong(str(error)) from error
    if headers:
        _check_order(headers, request)
    return headers


def _check_order(headers: Sequence[HashedHeader], request: GetHeaders) -> None:
    first = headers[0]
    if request.start != (first.hash if isinstance(request.start, bytes) else first.number):
        raise _wrong(f"header {first} is not the one that was asked for")
    step = -(request.skip + 1) if request.reverse else request.skip + 1
    for before, after in pairwise(headers):
        if after.number != before.number + step:
            raise _wrong(f"header {after.number} after header {before.number}")
        child, parent = (before, after) if request.reverse else (after, before)
        if request.skip == 0 and child.parent_hash != parent.hash:
            raise _wrong(f"header {child} does not follow header {parent}")


class SizedBody(Struct, frozen=True):
    """A body, and the bytes it travelled in."""

    body: Body
    size: int


def read_bodies(answer: bytes, headers: Sequence[HashedHeader]) -> list[SizedBody]:
    """The bodies of an answer as far as they belong to the headers, one after the other; senders are recovered."""
    with decoding("bodies"):
        sizes = [len(item) for item in split_list(answer, len(headers))]
        found = split_bodies(answer, len(headers))
    bodies: list[SizedBody] = []
    for body, size, header in zip(found, sizes, headers, strict=False):
        try:
            check_belongs(header.header, body)
        except InvalidBlock:
            break
        # a signature that gives no sender is met again on execution, after the header has been verified
        with suppress(InvalidBody):
            body.recover()
        bodies.append(SizedBody(body, size))
    return bodies


def read_transactions(answer: bytes) -> list[bytes]:
    """The transactions of a message, as they stand in a block."""
    with decoding("transactions"):
        return split_transactions(answer, _FEW_TRANSACTIONS + len(answer) // _MIN_TRANSACTION_BYTES)


def pooled_hash(raw: bytes) -> Hash32:
    """The hash of a transaction as it travels: blobs, which come behind it in a list around all, do not count."""
    if raw[0] != BLOB_TYPE:
        return keccak256(raw)
    _, start, _ = rlp.head(raw, 1)
    is_list, _, end = rlp.head(raw, start)
    return keccak256(raw[:1] + raw[start:end] if is_list else raw)


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """What the extension says about malformed bytes, as a `DecodeError`."""
    try:
        yield
    except NativeError as error:
        raise DecodeError(str(error), what) from error


def wrapped(raw: bytes) -> bytes:
    """A transaction or receipt as an item of a list: typed ones are byte strings there."""
    return raw if raw[0] >= 0xC0 else rlp.encode_bytes(raw)


def _wrong(problem: str) -> PeerMisbehaved:
    return PeerMisbehaved(DisconnectReason.BREACH, problem)
