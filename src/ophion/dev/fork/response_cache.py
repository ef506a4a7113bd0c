"""`ForkCache`: responses of a fork's source on disk, by chain id and block hash.

    FOLDER/CHAIN-ID/BLOCK-HASH.jsonl   one record per line: state, code, block hashes, responses
    FOLDER/points.jsonl                hash and chain id of a block number, by a digest of the source's address

Lines are only appended. A line that a crash has truncated is ignored. The address of the source is stored as a digest,
because it may contain an API key. With its first request, `Fork` checks that a stored block still has the same hash.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import orjson

_POINTS = "points.jsonl"


class ForkCache:
    """Reads and extends the cache file of one forked block."""

    def __init__(self, folder: Path, chain_id: int, block_hash: bytes) -> None:
        self._path = folder / str(chain_id) / f"0x{block_hash.hex()}.jsonl"
        self._lock = threading.Lock()
        self._file: BinaryIO | None = None

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the records that earlier runs have stored."""
        yield from _records(self._path)

    def add(self, record: dict[str, Any]) -> None:
        """Append one record to the cache file."""
        text = orjson.dumps(record) + b"\n"
        with self._lock:
            if self._file is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._file = _appending(self._path)
            self._file.write(text)
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None


def find_point(folder: Path, url: str, number: int) -> tuple[int, dict[str, Any]] | None:
    """Return the chain id and the block with this number, or None if the cache has no such block of this source."""
    found = None
    for record in _records(folder / _POINTS):
        if record.get("source") == _digest(url) and record.get("number") == number:
            found = (record["chainId"], record["block"]) if "block" in record else None
    return found


def keep_point(folder: Path, url: str, number: int, chain_id: int, block: dict[str, Any] | None) -> None:
    """Store the block that the source has at this block number. With `block` None, delete the stored block."""
    record: dict[str, Any] = {"source": _digest(url), "number": number, "chainId": chain_id}
    if block is not None:
        record["block"] = block
    folder.mkdir(parents=True, exist_ok=True)
    with _appending(folder / _POINTS) as file:
        file.write(orjson.dumps(record) + b"\n")


def _appending(path: Path) -> BinaryIO:
    """Open a file to append records. A line that a crash has truncated is ended first."""
    file = path.open("a+b")
    if file.tell():
        file.seek(-1, os.SEEK_END)
        if file.read(1) != b"\n":
            file.write(b"\n")
    return file


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        content = path.read_bytes()
    except OSError:
        return
    for line in content.splitlines():
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(record, dict):
            yield record


def _digest(url: str) -> str:
    return hashlib.sha256(url.encode()).hexdigest()
