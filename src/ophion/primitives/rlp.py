"""Strict Recursive Length Prefix (RLP) encoding and decoding.

Only canonical encodings decode; all others raise `RlpError` with the offset of the invalid byte. The nesting depth is
bounded to protect the stack. The number of items is bounded because a megabyte can hold a million empty items, which
take more than a second to decode.

Rust encodes and decodes transactions and receipts. This module is for headers, network messages, extra data and tools,
and splits files of concatenated blocks (`item_end`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from ophion.errors import DecodeError

Item: TypeAlias = "bytes | list[Item]"
"""A decoded value: a byte string or a list of values."""

Encodable: TypeAlias = "bytes | int | Sequence[Encodable]"
"""Input of `encode`. An integer is encoded as a scalar (big-endian, no leading zeros)."""

MAX_DEPTH: Final = 128
"""Maximum nesting depth. Ethereum needs seven levels; public test vectors use more."""

MAX_ITEMS: Final = 65_536
"""Default limit of the items of a decoded value, at all levels together. For local data and tools."""

MAX_HEAD: Final = 9
"""Bytes of the longest item header: one prefix byte and eight length bytes."""

EMPTY_STRING: Final = b"\x80"
EMPTY_LIST: Final = b"\xc0"


class RlpError(DecodeError):
    """Raised for bytes that are not canonical RLP, or not the RLP of the expected type."""

    def __init__(self, problem: str, offset: int) -> None:
        self.problem = problem
        self.offset = offset
        super().__init__(f"malformed RLP at byte {offset}: {problem}")


class TooManyItems(RlpError):
    """Raised for a value with more items than its reader accepts."""


# --- encoding -----------------------------------------------------------------------------------


def encode(value: Encodable) -> bytes:
    """Encode a byte string, a non-negative integer or a sequence of such values."""
    if isinstance(value, bytes):
        return encode_bytes(value)
    if isinstance(value, int):
        return encode_int(value)
    return list_of([encode_bytes(item) if isinstance(item, bytes) else encode(item) for item in value])


def encode_bytes(value: bytes) -> bytes:
    """Encode a byte string as RLP."""
    size = len(value)
    if size == 1 and value[0] < 0x80:
        return value
    if size < 56:
        return bytes((0x80 + size,)) + value
    return _long_head(0xB7, size) + value


def encode_int(value: int) -> bytes:
    """Encode an integer as an RLP scalar."""
    if value < 0x80:
        if value < 0:
            raise ValueError(f"RLP has no negative integers: {value}")
        return bytes((value,)) if value else EMPTY_STRING
    return encode_bytes(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def list_of(encoded: Sequence[bytes]) -> bytes:
    """Encode a list of items that are already encoded."""
    payload = b"".join(encoded)
    size = len(payload)
    if size < 56:
        return bytes((0xC0 + size,)) + payload
    return _long_head(0xF7, size) + payload


def scalar(value: int) -> bytes:
    """Return the scalar bytes of an integer: big-endian, without leading zeros. Zero is empty."""
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def _long_head(base: int, size: int) -> bytes:
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((base + len(length),)) + length


# --- decoding -----------------------------------------------------------------------------------


def decode(data: bytes, max_items: int = MAX_ITEMS) -> Item:
    """Decode one value. Raises `RlpError` if bytes follow the value.

    `max_items` counts the items of all levels together. Decoders of network messages pass the limit of their message.
    """
    is_list, start, end = head(data, 0)
    if end != len(data):
        if end > len(data):
            raise RlpError(f"item of {end} bytes in {len(data)} bytes of input", 0)
        raise RlpError(f"{len(data) - end} bytes after the end of the value", end)
    return _items(data, start, end, 1, [max_items]) if is_list else data[start:end]


def decode_list(data: bytes, max_items: int = MAX_ITEMS) -> list[Item]:
    """Decode an RLP list."""
    value = decode(data, max_items)
    if isinstance(value, bytes):
        raise RlpError("a byte string where a list is expected", 0)
    return value


def split_list(data: bytes, max_items: int) -> list[bytes]:
    """Split a list into its encoded items. Raises `TooManyItems` above `max_items`."""
    is_list, position, end = head(data, 0)
    if not is_list:
        raise RlpError("a byte string where a list is expected", 0)
    if end != len(data):
        raise RlpError("list does not end with the input", 0)
    items: list[bytes] = []
    while position < end:
        if len(items) == max_items:
            raise TooManyItems(f"a list of more than {max_items} items", position)
        item_stop = head(data, position)[2]
        if item_stop > end:
            raise RlpError("item reaches beyond its list", position)
        items.append(data[position:item_stop])
        position = item_stop
    return items


def item_end(data: bytes | bytearray | memoryview, offset: int) -> int:
    """Return the end offset of the item at `offset`. Reads only the header of the item.

    The end may be beyond the end of `data`; then a stream reader reads the missing bytes.
    """
    return head(data, offset)[2]


def decode_int(value: Item, offset: int = 0) -> int:
    """Convert a decoded scalar to an integer. `offset` is only for the error message."""
    if not isinstance(value, bytes):
        raise RlpError("a list where a number is expected", offset)
    if value[:1] == b"\x00":
        raise RlpError("a number with leading zeros", offset)
    return int.from_bytes(value, "big")


def head(data: bytes | bytearray | memoryview, offset: int) -> tuple[bool, int, int]:
    """Return (is a list, start of the payload, end of the payload) of the item at `offset`."""
    available = len(data)
    if offset >= available:
        raise RlpError("input ends where an item should start", offset)
    prefix = data[offset]
    if prefix < 0x80:
        return False, offset, offset + 1
    start = offset + 1
    if prefix < 0xB8:
        end = start + prefix - 0x80
        if prefix == 0x81 and start < available and data[start] < 0x80:
            raise RlpError("a single byte below 0x80 with a length prefix", offset)
        return False, start, end
    if prefix < 0xC0:
        size, start = _long_size(data, start, prefix - 0xB7)
        return False, start, start + size
    if prefix < 0xF8:
        return True, start, start + prefix - 0xC0
    size, start = _long_size(data, start, prefix - 0xF7)
    return True, start, start + size


def _long_size(data: bytes | bytearray | memoryview, start: int, width: int) -> tuple[int, int]:
    end = start + width
    if end > len(data):
        raise RlpError("input ends inside a length", start)
    if data[start] == 0:
        raise RlpError("a length with leading zeros", start)
    size = int.from_bytes(data[start:end], "big")
    if size < 56:
        raise RlpError("a long length where a short one would do", start)
    return size, end


def _items(data: bytes, position: int, end: int, depth: int, left: list[int]) -> list[Item]:
    """Decode the items of a list. `left` is the remaining number of items, shared by all levels."""
    if depth > MAX_DEPTH:
        raise RlpError(f"lists nested deeper than {MAX_DEPTH}", position)
    items: list[Item] = []
    limit = left[0]
    while position < end:
        if len(items) >= limit:
            raise TooManyItems("too many items", position)
        prefix = data[position]
        if prefix < 0x80:
            items.append(data[position : position + 1])
            position += 1
            continue
        is_list, start, stop = head(data, position)
        if stop > end:
            raise RlpError("item reaches beyond its list", position)
        if is_list:
            left[0] = limit - len(items) - 1
            items.append(_items(data, start, stop, depth + 1, left))
            limit = left[0] + len(items)
        else:
            items.append(data[start:stop])
        position = stop
    left[0] = limit - len(items)
    return items
