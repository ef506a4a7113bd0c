"""Strict decoding of the fields of eth messages.

All items of a hash list have the same size, so one slice comparison checks the whole list.
"""

from __future__ import annotations

from typing import Final

from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError
from ophion.primitives.types import HASH_LENGTH, Hash32

_HASH_HEAD: Final = 0xA0
_STRIDE: Final = 1 + HASH_LENGTH
MAX_ID_BYTES: Final = 8


def items_of(payload: bytes, min_items: int, max_items: int, what: str) -> list[rlp.Item]:
    """Decode a message that is a list. `max_items` bounds the total number of RLP items, nested items included."""
    items = rlp.decode(payload, max_items)
    if not isinstance(items, list) or len(items) < min_items:
        raise RlpError(f"{what}: a list of {min_items} items is expected", 0)
    return items


def parts_of(payload: bytes, count: int, what: str) -> list[bytes]:
    """Split an RLP list of `count` items into its encoded items."""
    parts = rlp.split_list(payload, count)
    if len(parts) != count:
        raise RlpError(f"{what}: {len(parts)} items instead of {count}", 0)
    return parts


def number(item: rlp.Item, bits: int, what: str) -> int:
    """Decode an unsigned integer. Rejects more than `bits` bits before the conversion."""
    if not isinstance(item, bytes) or 8 * len(item) > bits + 7:
        raise RlpError(f"{what}: not a number of {bits} bits", 0)
    value = rlp.decode_int(item)
    if value.bit_length() > bits:
        raise RlpError(f"{what}: not a number of {bits} bits", 0)
    return value


def block_hash(item: rlp.Item, what: str) -> Hash32:
    """Check that an item is a hash of 32 bytes."""
    if not isinstance(item, bytes) or len(item) != HASH_LENGTH:
        raise RlpError(f"{what}: not {HASH_LENGTH} bytes", 0)
    return item


def with_id(payload: bytes, what: str) -> tuple[int, bytes]:
    """Split a request or a response into (request id, encoded body)."""
    encoded_id, body = parts_of(payload, 2, what)
    return number(rlp.decode(encoded_id, 0), 8 * MAX_ID_BYTES, f"{what}: request id"), body


def list_of_hashes(encoded: bytes, what: str) -> list[Hash32]:
    """Decode a list of hashes."""
    is_list, start, end = rlp.head(encoded, 0)
    if not is_list or end != len(encoded):
        raise RlpError(f"{what}: a list of hashes is expected", 0)
    count, rest = divmod(end - start, _STRIDE)
    if rest or encoded[start:end:_STRIDE] != bytes((_HASH_HEAD,)) * count:
        raise RlpError(f"{what}: a list of hashes is expected", 0)
    return [encoded[at : at + HASH_LENGTH] for at in range(start + 1, end, _STRIDE)]


def encode_hashes(hashes: list[Hash32]) -> bytes:
    """Encode a list of hashes."""
    head = bytes((_HASH_HEAD,))
    return rlp.list_of([head + one for one in hashes])


def enclosed(request_id: int, body: bytes) -> bytes:
    """Encode a request or a response from its id and its encoded body."""
    return rlp.list_of((rlp.encode_int(request_id), body))
