"""Looks up keys in a stopped database of LevelDB or Pebble, without writing to it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ophion.errors import CommandError, DecodeError
from ophion.migration.leveldb.log_records import read_batch, read_records
from ophion.migration.leveldb.manifest import MARKER, TableFile, read_manifest
from ophion.migration.leveldb.sorted_table import SortedTable
from ophion.migration.source_lock import SourceLock

_SUFFIXES: Final = (".ldb", ".sst")
_MAX_OPEN_TABLES: Final = 128


class SortedDatabase:
    """A LevelDB or Pebble database, opened read-only. Raises `CommandError` when it cannot be read."""

    def __init__(self, path: Path, client: str) -> None:
        self._path = path
        self._client = client
        self._tables: dict[int, SortedTable] = {}
        self._lock = SourceLock(path / "LOCK", client)
        try:
            manifest = read_manifest(path)
            self._recent = dict(self._logged(manifest.log_number))
            levels = dict(manifest.levels)
            self._level_zero = list(levels.pop(0, {}).values())
            """Tables of level 0, whose key ranges overlap."""
            self._levels = [sorted(levels[level].values(), key=lambda table: table.largest) for level in sorted(levels)]
            self._ends = [[table.largest for table in level] for level in self._levels]
        except (OSError, DecodeError, ValueError) as error:
            self.close()
            raise self._unreadable(error) from error

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        if key in self._recent:
            return self._recent[key]
        try:
            found = [
                entry
                for file in self._level_zero
                if file.smallest <= key <= file.largest and (entry := self._table(file).get(key)) is not None
            ]
            if found:
                return max(found, key=lambda entry: entry[0])[1]
            for level, ends in zip(self._levels, self._ends, strict=True):
                place = bisect_left(ends, key)
                if place < len(level) and level[place].smallest <= key:
                    entry = self._table(level[place]).get(key)
                    if entry is not None:
                        return entry[1]
        except (OSError, DecodeError) as error:
            raise self._unreadable(error) from error
        return None

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield every key with its value, in order of keys. Holds all keys in memory."""
        try:
            keys = set(self._recent)
            for level in (self._level_zero, *self._levels):
                for file in level:
                    keys.update(self._table(file).keys())
        except (OSError, DecodeError) as error:
            raise self._unreadable(error) from error
        for key in sorted(keys):
            value = self.get(key)
            if value is not None:
                yield key, value

    def close(self) -> None:
        """Close all files and release the lock."""
        for table in self._tables.values():
            table.close()
        self._tables.clear()
        self._lock.close()

    def _logged(self, first: int) -> Iterator[tuple[bytes, bytes | None]]:
        """Yield the writes in the write-ahead logs that are not in sorted tables yet, oldest first."""
        logs = sorted((int(log.stem), log) for log in self._path.glob("*.log") if log.stem.isdecimal())
        for number, log in logs:
            if number >= first:
                for record in read_records(log.read_bytes(), number):
                    yield from read_batch(record)

    def _table(self, file: TableFile) -> SortedTable:
        table = self._tables.pop(file.number, None)
        if table is None:
            if len(self._tables) >= _MAX_OPEN_TABLES:
                self._tables.pop(next(iter(self._tables))).close()
            names = [self._path / f"{file.number:06}{suffix}" for suffix in _SUFFIXES]
            table = SortedTable(next((name for name in names if name.exists()), names[0]))
        # append the table, because the least recently used table is at the front and is closed first
        self._tables[file.number] = table
        return table

    def _unreadable(self, error: Exception) -> CommandError:
        why = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        return CommandError(
            f"Unable to read the database of {self._client} in {self._path}: {why}. Export its blocks with"
            f" {self._client} and use --from-rlp=FILE, or use --rpc=URL with the running node."
        )


def is_sorted_database(path: Path) -> bool:
    """Whether a directory holds a database of LevelDB or Pebble."""
    return (path / "CURRENT").is_file() or any(path.glob(f"{MARKER}*"))
