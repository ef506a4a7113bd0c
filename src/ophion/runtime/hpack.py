"""Header blocks of HTTP/2 (HPACK, RFC 7541), for a connection without a dynamic table.

A client that announces a table of 0 bytes (SETTINGS_HEADER_TABLE_SIZE) gets blocks that do not depend on each other.
So a block is decoded once and then found in a cache: equal replies have equal blocks.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

MAX_BLOCK_BYTES: Final = 8192
"""Maximum size of a header block. It bounds the time to decode the block."""
MAX_HEADERS: Final = 128
"""Maximum number of headers in a block."""
_MAX_INTEGER_BYTES: Final = 3
_CACHED_BLOCKS: Final = 64

_STATIC_TABLE: Final = (
    ":authority :method :method :path :path :scheme :scheme :status :status :status :status :status :status :status "
    "accept-charset accept-encoding accept-language accept-ranges accept access-control-allow-origin age allow "
    "authorization cache-control content-disposition content-encoding content-language content-length content-location "
    "content-range content-type cookie date etag expect expires from host if-match if-modified-since if-none-match "
    "if-range if-unmodified-since last-modified link location max-forwards proxy-authenticate proxy-authorization "
    "range referer refresh retry-after server set-cookie strict-transport-security transfer-encoding user-agent vary "
    "via www-authenticate"
)
"""Names of the static table (appendix A of the RFC), by number. The first number is 1."""
_STATIC_NAMES: Final = _STATIC_TABLE.split()
_STATIC_VALUES: Final = {
    2: "GET",
    3: "POST",
    4: "/",
    5: "/index.html",
    6: "http",
    7: "https",
    8: "200",
    9: "204",
    10: "206",
    11: "304",
    12: "400",
    13: "404",
    14: "500",
    16: "gzip, deflate",
}
"""Values of the static table. Other entries have an empty value."""

_CODE_LENGTHS: Final = (
    "13 23 28*7 24 30 28*2 30 28*8 30 28*9 6 10*2 12 13 6 8 11 10*2 8 11 8 6*3 5*3 6*7 7 8 15 6 12 10 13 6 7*22 8 7 8 "
    "13 19 13 14 6 15 5 6 5 6 5 6*3 5 7*2 6*3 5 6 7 6 5*2 6 7*5 15 11 14 13 28 20 22 20*2 22*3 23 22 23*5 24 23 24*2 "
    "22 23 24 23*4 21 22 23 22 23*2 24 22 21 20 22*2 23*2 21 23 22*2 24 21 22 23*2 21*2 22 21 23 22 23*2 20 22*3 23 "
    "22*2 23 26*2 20 19 22 23 22 25 26*3 27*2 26 24 25 19 21 26 27*2 26 27 24 21*2 26*2 28 27*3 20 24 20 21 22 21*2 "
    "23 22*2 25*2 24*2 26 23 26 27 26*2 27*5 28 27*5 26"
)
"""Bits of the Huffman code of each byte (appendix B of the RFC), equal neighbours as `BITS*COUNT`. The code is
canonical, so the lengths define it.
"""
_MAX_PADDING_BITS: Final = 7


class HpackError(ValueError):
    """Raised for a malformed header block."""


def _codes() -> dict[tuple[int, int], int]:
    """Return the byte of each Huffman code. The key is the length in bits, and the code."""
    lengths: list[int] = []
    for run in _CODE_LENGTHS.split():
        bits, _, count = run.partition("*")
        lengths += [int(bits)] * int(count or 1)
    found, code, previous = {}, 0, 0
    for length, byte in sorted((length, byte) for byte, length in enumerate(lengths)):
        code <<= length - previous
        found[length, code] = byte
        code, previous = code + 1, length
    return found


_BYTES: Final = _codes()
_MAX_CODE_BITS: Final = max(length for length, _ in _BYTES)


def encode_headers(headers: Iterable[tuple[str, str]]) -> bytes:
    """Encode headers as literals, which the server stores in no table."""
    return b"".join(b"\x00" + _encode_text(name) + _encode_text(value) for name, value in headers)


@lru_cache(_CACHED_BLOCKS)
def decode_headers(block: bytes) -> tuple[tuple[str, str], ...]:
    """Decode a block of at most `MAX_BLOCK_BYTES` bytes. Raises `HpackError`."""
    if len(block) > MAX_BLOCK_BYTES:
        raise HpackError("the header block is too long")
    found = []
    at = 0
    while at < len(block):
        first = block[at]
        if first & 0x80:
            number, at = _integer(block, at, 7)
            found.append((_static_name(number), _STATIC_VALUES.get(number, "")))
        elif first & 0xE0 == 0x20:
            size, at = _integer(block, at, 5)
            if size or found:
                raise HpackError("a change of the dynamic table")
        else:
            # read a literal for the dynamic table like any other literal, because this table has 0 bytes and cannot
            # store it
            number, at = _integer(block, at, 6 if first & 0x40 else 4)
            name, at = (_static_name(number), at) if number else _text(block, at)
            value, at = _text(block, at)
            found.append((name, value))
        if len(found) > MAX_HEADERS:
            raise HpackError("too many headers in a block")
    return tuple(found)


def _static_name(number: int) -> str:
    if not 1 <= number <= len(_STATIC_NAMES):
        raise HpackError("a header of a dynamic table")
    return _STATIC_NAMES[number - 1]


def _encode_text(text: str) -> bytes:
    data = text.encode("latin-1")
    if len(data) < 127:
        return bytes((len(data),)) + data
    rest = len(data) - 127
    length = bytearray((127,))
    while rest > 127:
        length.append(rest & 127 | 128)
        rest >>= 7
    length.append(rest)
    return bytes(length) + data


def _integer(block: bytes, at: int, bits: int) -> tuple[int, int]:
    """Read an integer whose first part has `bits` bits. Returns the integer and the place after it."""
    mask = (1 << bits) - 1
    value, at = block[at] & mask, at + 1
    if value < mask:
        return value, at
    for shift in range(0, 7 * _MAX_INTEGER_BYTES, 7):
        if at == len(block):
            raise HpackError("the header block is incomplete")
        value, at, is_last = value + ((block[at] & 127) << shift), at + 1, block[at] < 128
        if is_last:
            return value, at
    raise HpackError("an integer of a header block is too large")


def _text(block: bytes, at: int) -> tuple[str, int]:
    if at == len(block):
        raise HpackError("the header block is incomplete")
    is_huffman = block[at] & 0x80
    length, at = _integer(block, at, 7)
    end = at + length
    if end > len(block):
        raise HpackError("the header block is incomplete")
    data = block[at:end]
    return (_decode_huffman(data) if is_huffman else data).decode("latin-1"), end


def _decode_huffman(data: bytes) -> bytes:
    found = bytearray()
    length = code = 0
    for byte in data:
        for shift in range(7, -1, -1):
            length, code = length + 1, code << 1 | (byte >> shift & 1)
            decoded = _BYTES.get((length, code))
            if decoded is not None:
                found.append(decoded)
                length = code = 0
            elif length >= _MAX_CODE_BITS:
                raise HpackError("an unknown Huffman code")
    if length > _MAX_PADDING_BITS or code != (1 << length) - 1:
        raise HpackError("a Huffman code is incomplete")
    return bytes(found)
