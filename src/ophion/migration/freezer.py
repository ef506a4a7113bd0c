"""geth's freezer: append-only tables of old blocks.

A table has data files and an index of 6-byte entries (number of the data file, offset in this file). The first entry
holds the first data file and the number of removed items. Item n lies between entries n and n + 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO, Final

from ophion.errors import CommandError
from ophion.migration.block_source import optional_package

_ENTRY_BYTES: Final = 6


class FreezerTable:
    """One table of geth's freezer, such as `headers`. Raises `CommandError` when the table cannot be read."""

    def __init__(self, path: Path, name: str, is_compressed: bool = True) -> None:
        self._path = path
        self._name = name
        self._kind = "c" if is_compressed else "r"
        self._files: dict[int, BinaryIO] = {}
        self._unpack: Any = None
        self._index: BinaryIO | None = None
        self.first = self.count = 0
        """Number of the first item in the table. `count` is one more than the number of the last item."""
        index = path / f"{name}.{self._kind}idx"
        if not index.is_file() or index.stat().st_size < _ENTRY_BYTES:
            return
        if is_compressed:
            self._unpack = optional_package("cramjam", "Reading the freezer of geth").snappy.decompress_raw
        self._index = index.open("rb")
        first = self._index.read(_ENTRY_BYTES)
        self._first_file, self.first = int.from_bytes(first[:2], "big"), int.from_bytes(first[2:], "big")
        self.count = self.first + index.stat().st_size // _ENTRY_BYTES - 1

    def get(self, number: int) -> bytes | None:
        """Return an item, or None if the table does not contain it."""
        if self._index is None or not self.first <= number < self.count:
            return None
        place = number - self.first
        self._index.seek(place * _ENTRY_BYTES)
        entries = self._index.read(2 * _ENTRY_BYTES)
        start_file, start = int.from_bytes(entries[:2], "big"), int.from_bytes(entries[2:6], "big")
        end_file, end = int.from_bytes(entries[6:8], "big"), int.from_bytes(entries[8:], "big")
        if not place:  # index entry 0 holds the number of removed items instead of an offset
            start_file, start = self._first_file, 0
        if start_file != end_file:  # an item never spans two files, so this item is at the start of its file
            start = 0
        try:
            file = self._files.get(end_file)
            if file is None:
                path = self._path / f"{self._name}.{end_file:04}.{self._kind}dat"
                file = self._files[end_file] = path.open("rb")
            file.seek(start)
            data = file.read(end - start)
            if len(data) != end - start:
                raise ValueError("the file ends inside an item")
            return bytes(self._unpack(data)) if self._unpack is not None else data
        except (OSError, ValueError, RuntimeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise CommandError(f"Unable to read item {number} of {self._path / self._name}: {why}") from error

    def close(self) -> None:
        """Close all files."""
        for file in (*self._files.values(), *((self._index,) if self._index is not None else ())):
            file.close()
        self._files.clear()
        self._index = None
