"""Tests the lookup in logs and levels of databases that the test writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.errors import CommandError
from ophion.migration.leveldb.database import SortedDatabase, is_sorted_database
from ophion.migration.leveldb.manifest import read_manifest
from ophion.migration.leveldb.sorted_table import SortedTable

_LEVELDB_MAGIC = bytes.fromhex("57fb808b247547db")
_PEBBLE_MAGIC = bytes.fromhex("f09faab3f09faab3")
_SET, _DELETE = 1, 0


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def text(value: bytes) -> bytes:
    return varint(len(value)) + value


def internal(key: bytes, sequence: int, kind: int = _SET) -> bytes:
    return key + (sequence << 8 | kind).to_bytes(8, "little")


def block(entries: list[tuple[bytes, bytes]]) -> bytes:
    """Return an uncompressed block with one restart point and a checksum of zeros."""
    parts: list[bytes] = []
    before = b""
    for key, value in entries:
        shared = next(
            (i for i, (a, b) in enumerate(zip(before, key, strict=False)) if a != b), min(len(before), len(key))
        )
        parts.append(varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value)
        before = key
    return b"".join(parts) + bytes(4) + (1).to_bytes(4, "little") + bytes(5)


class TableWriter:
    """Collects the data blocks of a table file."""

    def __init__(self) -> None:
        self.data = b""

    def add(self, entries: list[tuple[bytes, bytes]]) -> bytes:
        """Append a block and return its handle."""
        raw = block(entries)
        handle = varint(len(self.data)) + varint(len(raw) - 5)
        self.data += raw
        return handle


def write_table(path: Path, blocks: list[list[tuple[bytes, bytes]]], *, two_levels: bool = False) -> None:
    """Write a table. With `two_levels`, the table has a two-level index as in Pebble, with one entry per index
    block.
    """
    out = TableWriter()
    index = [(entries[-1][0], out.add(entries)) for entries in blocks]
    meta: list[tuple[bytes, bytes]] = []
    if two_levels:
        index = [(key, out.add([(key, handle + b"block properties")])) for key, handle in index]
        kind = (b"rocksdb.block.based.table.index.type", (2).to_bytes(4, "little"))
        meta = [(b"rocksdb.properties", out.add([kind]))]
    handles = out.add(meta) + out.add(index)
    if two_levels:
        footer = b"\x01" + handles.ljust(40, b"\x00") + (2).to_bytes(4, "little") + _PEBBLE_MAGIC
    else:
        footer = handles.ljust(40, b"\x00") + _LEVELDB_MAGIC
    path.write_bytes(out.data + footer)


def record(data: bytes) -> bytes:
    return bytes(4) + len(data).to_bytes(2, "little") + b"\x01" + data


def new_file(level: int, number: int, smallest: bytes, largest: bytes) -> bytes:
    bounds = text(internal(smallest, 0)) + text(internal(largest, 0))
    return varint(7) + varint(level) + varint(number) + varint(99) + bounds


def new_file_4(level: int, number: int, smallest: bytes, largest: bytes) -> bytes:
    body = new_file(level, number, smallest, largest)[1:] + varint(1) + varint(9)
    return varint(103) + body + varint(6) + text(varint(1700000000)) + varint(1)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Write a database with two overlapping tables in level 0, a table in level 1, and a log. As in Pebble, a marker
    file names the manifest.
    """
    write_table(tmp_path / "000004.ldb", [[(internal(b"a", 0), b"old a"), (internal(b"b", 0), b"old b")]])
    write_table(
        tmp_path / "000005.sst",
        [[(internal(b"a", 7), b"a at 7"), (internal(b"a", 3), b"a at 3")], [(internal(b"c", 5), b"c at 5")]],
        two_levels=True,
    )
    write_table(tmp_path / "000006.sst", [[(internal(b"a", 9), b"a at 9"), (internal(b"b", 8, _DELETE), b"")]])
    edits = (
        varint(1) + text(b"leveldb.BytewiseComparator") + new_file(1, 3, b"a", b"z") + varint(2) + varint(10),
        varint(6) + varint(1) + varint(3) + new_file(1, 4, b"a", b"b") + new_file_4(0, 5, b"a", b"c"),
        new_file_4(0, 6, b"a", b"b") + varint(3) + varint(12) + varint(4) + varint(20) + varint(9) + varint(0),
    )
    (tmp_path / "MANIFEST-000009").write_bytes(b"".join(map(record, edits)))
    (tmp_path / "CURRENT").write_text("MANIFEST-000001\n")
    (tmp_path / "marker.manifest.000001.MANIFEST-000001").touch()
    (tmp_path / "marker.manifest.000002.MANIFEST-000009").touch()
    (tmp_path / "000008.log").write_bytes(record(bytes(12) + b"\x01\x01d\x05stale"))
    (tmp_path / "000010.log").write_bytes(record(bytes(12) + b"\x01\x01e\x03new" + b"\x00\x01c"))
    return tmp_path


def test_the_newest_entry_wins(database: Path) -> None:
    found = SortedDatabase(database, "geth")
    assert [found.get(key) for key in (b"a", b"b", b"c", b"d", b"e", b"f", b"")] == [
        b"a at 9",
        None,
        None,
        None,
        b"new",
        None,
        None,
    ]
    found.close()


def test_levels_below_are_read_where_level_0_has_no_entry(database: Path) -> None:
    (database / "marker.manifest.000002.MANIFEST-000009").unlink()
    edit = varint(1) + text(b"leveldb.BytewiseComparator") + new_file(1, 4, b"a", b"b") + new_file_4(2, 5, b"a", b"c")
    (database / "MANIFEST-000001").write_bytes(record(edit + varint(2) + varint(11)))
    found = SortedDatabase(database, "geth")
    assert [found.get(key) for key in (b"a", b"b", b"c", b"e")] == [b"old a", b"old b", b"c at 5", None]
    found.close()


def test_two_index_levels_and_several_versions_of_a_key(database: Path) -> None:
    table = SortedTable(database / "000005.sst")
    assert table.get(b"a") == (7, b"a at 7")
    assert table.get(b"b") is None
    assert table.get(b"c") == (5, b"c at 5")
    assert table.get(b"d") is None
    table.close()


def test_what_is_not_known_is_refused(database: Path) -> None:
    table = database / "000005.sst"
    table.write_bytes(
        table.read_bytes().replace((2).to_bytes(4, "little") + _PEBBLE_MAGIC, b"\x05\0\0\0" + _PEBBLE_MAGIC)
    )
    found = SortedDatabase(database, "geth")
    with pytest.raises(CommandError, match="Pebble format 5 are not supported.*--from-rlp=FILE"):
        found.get(b"a")
    found.close()
    manifest = database / "MANIFEST-000009"
    manifest.write_bytes(record(varint(1) + text(b"other")))
    with pytest.raises(CommandError, match="keys are sorted by other"):
        SortedDatabase(database, "geth")
    manifest.write_bytes(record(varint(77)))
    with pytest.raises(CommandError, match="unknown field 77"):
        SortedDatabase(database, "geth")
    manifest.unlink()
    with pytest.raises(CommandError, match="No such file"):
        SortedDatabase(database, "geth")


def test_a_database_is_recognised(database: Path, tmp_path: Path) -> None:
    assert is_sorted_database(database)
    (database / "CURRENT").unlink()
    assert is_sorted_database(database)
    assert not is_sorted_database(tmp_path / "nowhere")
    assert read_manifest(database).log_number == 10
