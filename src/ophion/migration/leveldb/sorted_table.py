"""One sorted table: data blocks, an index of one or two levels, a footer.

A block is a list of entries, then restart points, the compression (1 byte) and a checksum (4). The key of an entry
shares a prefix with the previous key. Keys end with 8 bytes: the kind of the entry and its sequence number.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ophion.errors import DecodeError
from ophion.migration.block_source import optional_package
from ophion.migration.leveldb.log_records import DELETIONS, SET, SET_WITH_DELETE
from ophion.migration.leveldb.varints import FieldReader

_LEVELDB_MAGIC: Final = bytes.fromhex("57fb808b247547db")
_ROCKSDB_MAGIC: Final = bytes.fromhex("f7cff485b741e288")
_PEBBLE_MAGIC: Final = bytes.fromhex("f09faab3f09faab3")
_LEVELDB_FOOTER_BYTES: Final = 48
_FOOTER_BYTES: Final = 53
_MAX_PEBBLE_VERSION: Final = 2
_TRAILER_BYTES: Final = 5
_KEY_TRAILER_BYTES: Final = 8
_UNCOMPRESSED, _SNAPPY, _ZSTD = 0, 1, 7
_PROPERTIES: Final = b"rocksdb.properties"
_INDEX_TYPE: Final = b"rocksdb.block.based.table.index.type"
_TWO_LEVELS: Final = 2
_CACHED_BLOCKS: Final = 64


class _Block:
    """The entries of a block, with a separate list of user keys for binary search."""

    __slots__ = ("keys", "trailers", "values")

    def __init__(self, data: bytes, has_trailers: bool = True) -> None:
        self.keys: list[bytes] = []
        self.values: list[bytes] = []
        self.trailers: list[int] = []
        restarts = int.from_bytes(data[-4:], "little")
        fields = FieldReader(data)
        fields.end = len(data) - 4 * (restarts + 1)
        key = b""
        while not fields.is_at_end():
            shared, rest, size = fields.number(), fields.number(), fields.number()
            key = key[:shared] + fields.take(rest)
            self.values.append(fields.take(size))
            if has_trailers:
                self.keys.append(key[:-_KEY_TRAILER_BYTES])
                self.trailers.append(int.from_bytes(key[-_KEY_TRAILER_BYTES:], "little"))
            else:
                self.keys.append(key)


class SortedTable:
    """An open sorted table. Raises `OSError`, or `DecodeError` for an unknown format."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        try:
            meta, index = self._footer(path)
            properties = self._properties(meta)
            self._index = _Block(self._read(*index))
            kind = int.from_bytes(properties.get(_INDEX_TYPE, b""), "little")
            self._has_two_levels = kind == _TWO_LEVELS
        except BaseException:
            self._file.close()
            raise
        self._block = lru_cache(_CACHED_BLOCKS)(self._load)

    def get(self, key: bytes) -> tuple[int, bytes | None] | None:
        """Return (sequence number, value) of a key, or None if the table has no entry. A deleted key has the value
        None.
        """
        index = self._index
        if self._has_two_levels:
            place = bisect_left(index.keys, key)
            if place == len(index.keys):
                return None
            index = self._block(_handle(index.values[place]))
        place = bisect_left(index.keys, key)
        # a key may equal the index key of one block and have its entries in the next block
        while place < len(index.keys):
            block = self._block(_handle(index.values[place]))
            found = bisect_left(block.keys, key)
            if found < len(block.keys):
                return _entry(block, found) if block.keys[found] == key else None
            place += 1
        return None

    def keys(self) -> Iterator[bytes]:
        """Yield the keys of all entries, in order."""
        indexes = [self._index]
        if self._has_two_levels:
            indexes = [self._load(_handle(value)) for value in self._index.values]
        for index in indexes:
            for value in index.values:
                yield from self._load(_handle(value)).keys

    def close(self) -> None:
        """Close the file."""
        self._block.cache_clear()
        self._file.close()

    def _footer(self, path: Path) -> tuple[tuple[int, int], tuple[int, int]]:
        """Read the footer. Returns the position and size of the meta index block and of the index block."""
        size = self._file.seek(0, 2)
        self._file.seek(max(0, size - _FOOTER_BYTES))
        footer = self._file.read()
        magic = footer[-8:]
        if magic == _LEVELDB_MAGIC:
            fields = FieldReader(footer[-_LEVELDB_FOOTER_BYTES:])
        elif magic in (_ROCKSDB_MAGIC, _PEBBLE_MAGIC) and len(footer) == _FOOTER_BYTES:
            version = int.from_bytes(footer[-12:-8], "little")
            if magic == _PEBBLE_MAGIC and version > _MAX_PEBBLE_VERSION:
                raise DecodeError(f"tables of Pebble format {version} are not supported", str(path))
            fields = FieldReader(footer, 1)
        else:
            raise DecodeError("not a table of LevelDB or Pebble", str(path))
        return (fields.number(), fields.number()), (fields.number(), fields.number())

    def _properties(self, meta: tuple[int, int]) -> dict[bytes, bytes]:
        found = _Block(self._read(*meta), has_trailers=False)
        place = dict(zip(found.keys, found.values, strict=True)).get(_PROPERTIES)
        if place is None:
            return {}
        properties = _Block(self._read(*_handle(place)), has_trailers=False)
        return dict(zip(properties.keys, properties.values, strict=True))

    def _load(self, handle: tuple[int, int]) -> _Block:
        return _Block(self._read(*handle))

    def _read(self, offset: int, size: int) -> bytes:
        self._file.seek(offset)
        data = self._file.read(size + _TRAILER_BYTES)
        if len(data) != size + _TRAILER_BYTES:
            raise DecodeError("a table ends inside a block", str(self._file.name))
        kind = data[size]
        if kind == _UNCOMPRESSED:
            return data[:size]
        package: Any = optional_package("cramjam", "Reading compressed tables")
        if kind == _SNAPPY:
            return bytes(package.snappy.decompress_raw(data[:size]))
        if kind == _ZSTD:
            fields = FieldReader(data[:size])
            fields.number()  # skip the size of the uncompressed content
            return bytes(package.zstd.decompress(data[fields.position : size]))
        raise DecodeError(f"unknown compression {kind}", str(self._file.name))


def _handle(value: bytes) -> tuple[int, int]:
    fields = FieldReader(value)
    return fields.number(), fields.number()


def _entry(block: _Block, place: int) -> tuple[int, bytes | None] | None:
    sequence, kind = divmod(block.trailers[place], 256)
    if kind in (SET, SET_WITH_DELETE):
        return sequence, block.values[place]
    return (sequence, None) if kind in DELETIONS else None
