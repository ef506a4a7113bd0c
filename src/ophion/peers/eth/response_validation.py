"""Decodes responses and checks them against their requests. The functions run in a worker thread.

The functions raise `PeerMisbehaved` for responses that no honest node sends, such as unlinked headers or too many
items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Final

from msgspec import Struct

from ophion.chain.validation import check_belongs
from ophion.consensus.engine import Engine
from ophion.errors import DecodeError, InvalidBlock
from ophion.native.crypto import keccak256
from ophion.native.exceptions import NativeError
from ophion.native.transactions import Body, recover_bodies
from ophion.native.wire import (
    Receipts,
    header_fields,
    split_and_hash_transactions,
    split_bodies,
    split_list,
    split_receipts,
    split_transactions,
)
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.messages import MAX_HEADER_BYTES, GetHeaders
from ophion.pool.admission import BLOB_TYPE
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Hash32

_MIN_TRANSACTION_BYTES: Final = 56
"""Minimum average size in bytes of the transactions in a long message. Real transactions are longer: a signature alone
has 64 bytes.
"""
_FEW_TRANSACTIONS: Final = 64
"""The minimum average size does not apply to messages with at most this many transactions."""


def read_headers(
    body: bytes,
    request: GetHeaders,
    engine: Engine,
    refused: Callable[[Sequence[Header]], None] = lambda headers: None,
) -> list[HashedHeader]:
    """Decode headers and check them against the request. Calls `refused` with headers that fail the checks."""
    with decoding("headers"):
        encoded = split_list(body, request.limit)
    longest = max(map(len, encoded), default=0)
    if longest > MAX_HEADER_BYTES:
        raise _wrong(f"a header of {longest} bytes")
    decoded = [_decoded(item) for item in encoded]
    try:
        headers = [engine.hashed(header, item) for header, item in zip(decoded, encoded, strict=True)]
    except InvalidBlock as error:
        refused(decoded)
        raise _wrong(str(error)) from error
    if headers:
        try:
            _check_order(headers, request)
        except PeerMisbehaved:
            refused(decoded)
            raise
    return headers


def _decoded(encoded: bytes) -> Header:
    """Decode a header. `header_fields` is the fast path of `Header.decode`, which raises for malformed headers."""
    fields = header_fields(encoded)
    return Header.decode(encoded) if fields is None else Header(*fields)  # type: ignore[arg-type]


def _check_order(headers: Sequence[HashedHeader], request: GetHeaders) -> None:
    first = headers[0]
    if request.start != (first.hash if isinstance(request.start, bytes) else first.number):
        raise _wrong(f"header {first} is not the requested one")
    step = -(request.skip + 1) if request.reverse else request.skip + 1
    for before, after in pairwise(headers):
        if after.number != before.number + step:
            raise _wrong(f"header {after.number} after header {before.number}")
        child, parent = (before, after) if request.reverse else (after, before)
        if request.skip == 0 and child.parent_hash != parent.hash:
            raise _wrong(f"header {child} does not follow header {parent}")


class SizedBody(Struct, frozen=True):
    """A body and its encoded size in bytes."""

    body: Body
    size: int


def read_bodies(answer: bytes, headers: Sequence[HashedHeader]) -> list[SizedBody]:
    """Decode bodies and recover senders. Stops at the first body that does not match its header.

    Raises `PeerMisbehaved` if this body belongs to none of the headers.
    """
    with decoding("bodies"):
        sizes = [len(item) for item in split_list(answer, len(headers))]
        found = split_bodies(answer, len(headers))
    bodies: list[SizedBody] = []
    for body, size, header in zip(found, sizes, headers, strict=False):
        try:
            check_belongs(header.header, body)
        except InvalidBlock as error:
            roots = (body.ommers_hash, body.transactions_root, body.withdrawals_root)
            if roots not in (_body_roots(one.header) for one in headers):
                raise _wrong(f"a body that was not requested, in place of block {header}") from error
            break
        bodies.append(SizedBody(body, size))
    # an invalid signature is no error here, because execution reports it after the header is verified
    recover_bodies([one.body for one in bodies])
    return bodies


def _body_roots(header: Header) -> tuple[Hash32, Hash32, Hash32 | None]:
    return header.ommers_hash, header.transactions_root, header.withdrawals_root


def read_receipts(answer: bytes, headers: Sequence[HashedHeader], has_blooms: bool) -> list[Receipts]:
    """Decode the receipts of blocks. Raises `PeerMisbehaved` if they do not have the root that the header names."""
    with decoding("receipts"):
        found = split_receipts(answer, has_blooms, len(headers))
    for receipts, header in zip(found, headers, strict=False):
        if receipts.root != header.header.receipts_root:
            raise _wrong(f"the receipts of block {header} have another root")
    return found


def read_transactions(answer: bytes) -> list[bytes]:
    """Split a message into its transactions, in EIP-2718 encoding."""
    with decoding("transactions"):
        return split_transactions(answer, _max_transactions(answer))


def read_hashed_transactions(message: bytes) -> tuple[list[Hash32], list[bytes]]:
    """Split a message into its transactions. Returns their hashes and their EIP-2718 encodings."""
    with decoding("transactions"):
        return split_and_hash_transactions(message, _max_transactions(message))


def _max_transactions(message: bytes) -> int:
    return _FEW_TRANSACTIONS + len(message) // _MIN_TRANSACTION_BYTES


def pooled_hash(raw: bytes) -> Hash32:
    """Return the hash of a transaction from its network form. The hash does not cover the blob sidecar."""
    if raw[0] != BLOB_TYPE:
        return keccak256(raw)
    _, start, _ = rlp.head(raw, 1)
    is_list, _, end = rlp.head(raw, start)
    return keccak256(raw[:1] + raw[start:end] if is_list else raw)


@contextmanager
def decoding(what: str) -> Iterator[None]:
    """Translate errors of the native extension to `DecodeError`."""
    try:
        yield
    except NativeError as error:
        raise DecodeError(str(error), what) from error


def wrapped(raw: bytes) -> bytes:
    """Encode a transaction or receipt as a list item. A typed transaction or receipt becomes a byte string."""
    return raw if raw[0] >= 0xC0 else rlp.encode_bytes(raw)


def _wrong(problem: str) -> PeerMisbehaved:
    return PeerMisbehaved(DisconnectReason.BREACH, problem)
