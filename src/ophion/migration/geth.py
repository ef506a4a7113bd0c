"""The chain in a data directory of geth or GoQuorum.

<datadir>/geth/chaindata/                 LevelDB or Pebble: recent blocks
<datadir>/geth/chaindata/ancient/chain/   freezer: older blocks; geth before 1.11 has no folder `chain`

Keys: `h` number hash (header), `h` number `n` (canonical hash), `b` number hash (body), `H` hash (number), `LastBlock`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ophion.errors import CommandError
from ophion.migration.block_source import SourceHead, join_block, missing_block
from ophion.migration.freezer import FreezerTable
from ophion.migration.leveldb.database import SortedDatabase, is_sorted_database
from ophion.node.foreign_data import find_foreign_data
from ophion.primitives.types import Hash32

_CHAINDATA: Final = ("geth/chaindata", "chaindata", ".")
_HEAD_KEY: Final = b"LastBlock"
_NUMBER_BYTES: Final = 8


class GethSource:
    """Blocks of a stopped geth or GoQuorum node."""

    def __init__(self, path: Path, ancient: Path | None = None) -> None:
        """Open the database. `ancient` is the directory of the freezer (geth's --datadir.ancient). If None, the default
        directory is used.
        """
        chaindata = next((path / place for place in _CHAINDATA if is_sorted_database(path / place)), None)
        if chaindata is None:
            raise CommandError(
                f"There is no database of geth in {path}: {path / _CHAINDATA[0]} is missing. Give the directory that"
                " geth had as --datadir."
            )
        found = find_foreign_data(path)
        self.client = "GoQuorum" if found is not None and found[0].client == "GoQuorum" else "geth"
        self._database = SortedDatabase(chaindata, self.client)
        freezer = _find_freezer(ancient or chaindata / "ancient")
        self._hashes = FreezerTable(freezer, "hashes", is_compressed=False)
        self._headers = FreezerTable(freezer, "headers")
        self._bodies = FreezerTable(freezer, "bodies")
        try:
            self._head = self._find_head(path)
        except BaseException:
            self.close()
            raise

    def head(self) -> SourceHead:
        """Return the head that geth has stored."""
        return self._head

    def hash_at(self, number: int) -> Hash32 | None:
        """Return the hash of the canonical block with this number."""
        if number > self._head.number:
            return None
        frozen = self._hashes.get(number)
        return frozen if frozen is not None else self._database.get(b"h" + _number(number) + b"n")

    def blocks(self, first: int, last: int) -> Iterator[bytes]:
        """Yield the RLP of the canonical blocks."""
        for number in range(first, last + 1):
            header, body = self._headers.get(number), self._bodies.get(number)
            if header is None or body is None:
                found = self.hash_at(number)
                if found is None:
                    raise missing_block(self.client, number, "hash")
                header = header or self._database.get(b"h" + _number(number) + found)
                body = body or self._database.get(b"b" + _number(number) + found)
            if header is None or body is None:
                raise missing_block(self.client, number, "header" if header is None else "body")
            yield join_block(header, body)

    def close(self) -> None:
        """Close all files."""
        self._database.close()
        for table in (self._hashes, self._headers, self._bodies):
            table.close()

    def _find_head(self, path: Path) -> SourceHead:
        block_hash = self._database.get(_HEAD_KEY)
        number = None if block_hash is None else self._database.get(b"H" + block_hash)
        if block_hash is None or number is None:
            raise CommandError(f"The database in {path} has no head: geth has not stored a chain there.")
        return SourceHead(int.from_bytes(number, "big"), block_hash)


def _find_freezer(ancient: Path) -> Path:
    newer = ancient / "chain"
    return newer if newer.is_dir() else ancient


def _number(number: int) -> bytes:
    return number.to_bytes(_NUMBER_BYTES, "big")
