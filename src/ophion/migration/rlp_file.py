"""Reads a file of concatenated RLP blocks, the export format of Besu, geth, GoQuorum and Ophion."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

from ophion.chain.block import peek_header
from ophion.chain.block_file import split_blocks
from ophion.consensus.engine import Engine
from ophion.errors import CommandError, DecodeError
from ophion.migration.block_source import SourceHead
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Hash32


class RlpFileSource:
    """Blocks of an export file. The blocks must be consecutive; the file may begin at any number."""

    client = "the file"

    def __init__(self, path: Path, engine: Engine) -> None:
        """Open the file. Reads the length of each block, and the headers of the first and the last block."""
        self._path = path
        self._engine = engine
        # `_offsets` holds the offsets of all blocks, followed by the size of the file
        self._offsets = array("Q")
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise CommandError(f"Unable to read {path}: {error.strerror}") from error
        size = 0
        for offset, raw in split_blocks(self._file, path):
            self._offsets.append(offset)
            size = offset + len(raw)
        self._offsets.append(size)
        if not size:
            raise CommandError(f"{path} holds no blocks.")
        self._first = self._header(0).number
        last = self._header(len(self._offsets) - 2)
        if last.number != self._first + len(self._offsets) - 2:
            raise CommandError(
                f"{path} holds {len(self._offsets) - 1} blocks, but the first is block {self._first} and the last is"
                f" block {last.number}. Blocks are missing or stand twice; use `ophion blocks import` for such a file."
            )
        self._head = SourceHead(last.number, last.hash)

    def head(self) -> SourceHead:
        """Return the last block of the file."""
        return self._head

    def hash_at(self, number: int) -> Hash32 | None:
        """Return the hash of a block in the file."""
        if not self._first <= number <= self._head.number:
            return None
        return self._header(number - self._first).hash

    def blocks(self, first: int, last: int) -> Iterator[bytes]:
        """Yield the RLP of blocks in a range. Numbers below the first block of the file are skipped."""
        with self._path.open("rb") as file:
            for number in range(max(first, self._first), last + 1):
                index = number - self._first
                file.seek(self._offsets[index])
                yield file.read(self._offsets[index + 1] - self._offsets[index])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _header(self, index: int) -> HashedHeader:
        start, end = self._offsets[index], self._offsets[index + 1]
        self._file.seek(start)
        try:
            return peek_header(self._file.read(end - start), self._engine)
        except DecodeError as error:
            raise DecodeError(f"not a block: {error}", f"{self._path} at byte {start}") from error
