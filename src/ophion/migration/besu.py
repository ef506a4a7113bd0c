"""The chain in a data directory of Besu 1.4 to 26.x.

<data-path>/DATABASE_METADATA.json   {"version": 1} or {"v2": {"format": "BONSAI", "version": 3}}
<data-path>/database/                RocksDB; each segment is a column family with a name of one byte

The segment BLOCKCHAIN (1) is the same for Forest and Bonsai. Its keys are a prefix byte and a hash or number. Besu from
23.4.2 on stores the hash of the head in the segment VARIABLES (11); earlier versions store it in BLOCKCHAIN.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ophion.errors import CommandError
from ophion.migration.block_source import SourceHead, join_block, missing_block
from ophion.migration.rocksdb_reader import RocksDatabase
from ophion.primitives.header import Header
from ophion.primitives.types import Hash32

_BLOCKCHAIN: Final = "\x01"
_VARIABLES: Final = "\x0b"
_UNSEGMENTED: Final = "default"
"""Column family that Besu before 1.2 used for all data, with the same keys."""
_HEAD_KEY: Final = b"chainHeadHash"
_OLD_HEAD_KEY: Final = b"\x01" + _HEAD_KEY
_HEADER, _BODY, _HASH = b"\x02", b"\x03", b"\x05"
_BATCH_BLOCKS: Final = 64


class BesuSource:
    """Blocks of a stopped Besu node."""

    client = "Besu"

    def __init__(self, path: Path, links: Path) -> None:
        """Open the database. `path` is Besu's data path; `links` is a directory for links to the files of the
        database.
        """
        database = path / "database"
        if not (database / "CURRENT").is_file():
            raise CommandError(
                f"There is no database of Besu in {path}: {database / 'CURRENT'} is missing. Give the directory that"
                " Besu had as --data-path."
            )
        self.storage_format = read_storage_format(path)
        self._database = RocksDatabase(database, links, self.client)
        self.warning = self._database.warning
        self._segment = _BLOCKCHAIN if _BLOCKCHAIN in self._database.families else _UNSEGMENTED
        try:
            self._head = self._find_head(path)
        except BaseException:
            self.close()
            raise

    def head(self) -> SourceHead:
        """Return the head that Besu has stored."""
        return self._head

    def hash_at(self, number: int) -> Hash32 | None:
        """Return the hash of the canonical block with this number."""
        return self._database.get(self._segment, _hash_key(number))

    def blocks(self, first: int, last: int) -> Iterator[bytes]:
        """Yield the RLP of the canonical blocks."""
        for start in range(first, last + 1, _BATCH_BLOCKS):
            numbers = range(start, min(start + _BATCH_BLOCKS, last + 1))
            hashes: list[bytes] = []
            for number, found in zip(numbers, self._get([_hash_key(number) for number in numbers]), strict=True):
                if found is None:
                    raise missing_block(self.client, number, "hash")
                hashes.append(found)
            headers = self._get([_HEADER + found for found in hashes])
            bodies = self._get([_BODY + found for found in hashes])
            for number, header, body in zip(numbers, headers, bodies, strict=True):
                if header is None or body is None:
                    raise missing_block(self.client, number, "header" if header is None else "body")
                yield join_block(header, body)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _get(self, keys: list[bytes]) -> list[bytes | None]:
        return self._database.get_many(self._segment, keys)

    def _find_head(self, path: Path) -> SourceHead:
        """Find the head. After a downgrade of Besu, two segments hold a head, and the higher block counts."""
        stored = (self._database.get(_VARIABLES, _HEAD_KEY), self._database.get(self._segment, _OLD_HEAD_KEY))
        heads: list[SourceHead] = []
        for block_hash in stored:
            header = None if block_hash is None else self._database.get(self._segment, _HEADER + block_hash)
            if block_hash is not None and header is not None:
                heads.append(SourceHead(Header.decode(header).number, block_hash))
        if not heads:
            raise CommandError(
                f"The database in {path} has no head: Besu has not stored a chain there, or the database is damaged."
            )
        return max(heads, key=lambda head: head.number)


def _hash_key(number: int) -> bytes:
    return _HASH + number.to_bytes(32, "big")


def read_storage_format(path: Path) -> str:
    """Return the storage format for the report, such as `BONSAI 3`, or `unknown` if the metadata file cannot be
    read.
    """
    try:
        content = json.loads((path / "DATABASE_METADATA.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return "unknown"
    if not isinstance(content, dict):
        return "unknown"
    newer = content.get("v2")
    if isinstance(newer, dict):
        return f"{newer.get('format')} {newer.get('version')}"
    return {0: "FOREST 0", 1: "FOREST 1", 2: "BONSAI 1"}.get(content.get("version", 0), "unknown")
