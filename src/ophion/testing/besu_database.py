"""Writes a chain as Besu stores it: RocksDB with one column family per segment."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ophion.chain.block import peek_header
from ophion.chain.block_file import split_blocks
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader

BLOCKCHAIN, VARIABLES = "\x01", "\x0b"
FOREST = ("default", BLOCKCHAIN, "\x02", "\x03", "\x04", "\x05", VARIABLES, "\x0c")
BONSAI = ("default", BLOCKCHAIN, "\x06", "\x07", "\x08", "\x09", "\x0a", VARIABLES, "\x0c", "\x0d", "\x0e", "\x0f")


def read_chain(folder: Path, blocks: str = "blocks.rlp") -> Iterator[tuple[HashedHeader, bytes]]:
    """Yield header and RLP of each block in an export file."""
    engine = engine_for(parse_genesis((folder / "genesis.json").read_bytes()).spec)
    with (folder / blocks).open("rb") as file:
        for _, raw in split_blocks(file, folder / blocks):
            yield peek_header(raw, engine), raw


def write_besu_database(
    path: Path,
    chain: Path,
    *,
    metadata: object = None,
    families: tuple[str, ...] = FOREST,
    has_variables: bool = False,
    has_blobs: bool = False,
) -> list[bytes]:
    """Write the data directory of a Besu node; returns the blocks. The last blocks stay in the write-ahead log."""
    rocksdict = importlib.import_module("rocksdict")  # the package comes with the extra ophion[migrate]
    path.mkdir(parents=True)
    (path / "DATABASE_METADATA.json").write_text(json.dumps(metadata or {"version": 1}))
    options = _options(rocksdict)
    options.create_if_missing(True)
    database = rocksdict.Rdict(str(path / "database"), options=options)
    segments = {"default": database}
    for name in families[1:]:
        family = _options(rocksdict)
        if has_blobs and name == BLOCKCHAIN:
            family.set_enable_blob_files(True)
            family.set_min_blob_size(100)
        segments[name] = database.create_column_family(name, family)
    chainspace = segments.get(BLOCKCHAIN, database)
    blocks: list[bytes] = []
    for header, raw in read_chain(chain):
        number = header.number
        _, start, _ = rlp.head(raw, 0)
        end = rlp.item_end(raw, start)
        chainspace[b"\x02" + header.hash] = raw[start:end]
        chainspace[b"\x03" + header.hash] = rlp.list_of([raw[end:]])
        chainspace[b"\x05" + number.to_bytes(32, "big")] = header.hash
        chainspace[b"\x06" + header.hash] = number.to_bytes(32, "big")
        if has_variables:
            segments[VARIABLES][b"chainHeadHash"] = header.hash
        else:
            chainspace[b"\x01chainHeadHash"] = header.hash
        blocks.append(raw)
        if number % 10 == 9:
            chainspace.flush()
    for segment in reversed(segments.values()):
        segment.close()
    (path / "database" / "rocksdict-config.json").unlink(missing_ok=True)
    return blocks


def _options(rocksdict: Any) -> Any:
    options = rocksdict.Options(raw_mode=True)
    options.set_compression_type(rocksdict.DBCompressionType.lz4())
    return options


def snapshot(path: Path) -> dict[str, tuple[int, int]]:
    """Return size and modification time of each file in a folder, by path, so that tests can detect changes."""
    return {str(found): (found.stat().st_size, found.stat().st_mtime_ns) for found in [path, *path.rglob("*")]}
