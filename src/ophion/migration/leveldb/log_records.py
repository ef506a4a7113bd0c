"""Records of write-ahead logs and manifests, and the write batches in logs.

A file consists of blocks of 32 KiB. A record consists of one or more chunks. A chunk has a checksum (4 bytes), a length
(2) and a type (1); recyclable chunks of Pebble also have the number of the log (4).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ophion.errors import DecodeError
from ophion.migration.leveldb.varints import FieldReader

_BLOCK_BYTES: Final = 32768
_HEADER_BYTES: Final = 7
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_LEGACY_TYPES: Final = 4
_RECYCLABLE_TYPES: Final = 8
_BATCH_HEADER_BYTES: Final = 12

DELETE, SET, MERGE, LOG_DATA, SINGLE_DELETE, RANGE_DELETE, SET_WITH_DELETE = 0, 1, 2, 3, 7, 15, 18
DELETE_SIZED: Final = 23
_KEY_ONLY: Final = frozenset((DELETE, LOG_DATA, SINGLE_DELETE))
_WITH_VALUE: Final = frozenset((SET, MERGE, RANGE_DELETE, SET_WITH_DELETE, DELETE_SIZED))
DELETIONS: Final = frozenset((DELETE, SINGLE_DELETE, DELETE_SIZED))


def read_records(data: bytes, log_number: int = 0) -> Iterator[bytes]:
    """Yield the records of a file. Stops at an incomplete record, or at a record of an earlier log in a
    recycled file.
    """
    position, parts = 0, list[bytes]()
    while position + _HEADER_BYTES <= len(data):
        left = _BLOCK_BYTES - position % _BLOCK_BYTES
        if left < _HEADER_BYTES:
            position += left
            continue
        size = int.from_bytes(data[position + 4 : position + 6], "little")
        kind = data[position + 6]
        header = _HEADER_BYTES
        if not kind:  # record type 0 means that only zeros remain up to the end of the block
            position += left
            continue
        if _LEGACY_TYPES < kind <= _RECYCLABLE_TYPES:
            header += 4
            if int.from_bytes(data[position + 7 : position + 11], "little") != log_number & 0xFFFFFFFF:
                return
            kind -= _LEGACY_TYPES
        if kind > _LEGACY_TYPES or header + size > left or position + header + size > len(data):
            return
        piece = data[position + header : position + header + size]
        position += header + size
        if kind in (_FULL, _FIRST):
            parts = [piece]
        else:
            parts.append(piece)
        if kind in (_FULL, _LAST):
            yield b"".join(parts)
            parts = []


def read_batch(record: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield (key, value) of each write; the value of a deletion is None. Raises `DecodeError` for an unknown format."""
    if len(record) < _BATCH_HEADER_BYTES:
        return
    fields = FieldReader(record, _BATCH_HEADER_BYTES)
    while not fields.is_at_end():
        kind = fields.take(1)[0]
        if kind not in _KEY_ONLY and kind not in _WITH_VALUE:
            raise DecodeError(f"unknown write of kind {kind}", f"byte {fields.position}")
        key = fields.text()
        value = fields.text() if kind in _WITH_VALUE else b""
        if kind in DELETIONS:
            yield key, None
        elif kind in (SET, SET_WITH_DELETE):
            yield key, value
