"""The manifest: the live tables by level, and the first log whose writes are not in tables yet."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec import Struct, field

from ophion.errors import DecodeError
from ophion.migration.leveldb.log_records import read_records
from ophion.migration.leveldb.varints import FieldReader

_COMPARATOR, _LOG_NUMBER, _NEXT_FILE, _LAST_SEQUENCE, _COMPACT_POINTER, _DELETED_FILE, _PREVIOUS_LOG = (
    1,
    2,
    3,
    4,
    5,
    6,
    9,
)
_NEW_FILE, _NEW_FILE_2, _NEW_FILE_3, _NEW_FILE_4, _NEW_FILE_5 = 7, 100, 102, 103, 104
_NEW_FILES: Final = (_NEW_FILE, _NEW_FILE_2, _NEW_FILE_3, _NEW_FILE_4, _NEW_FILE_5)
_COMPARATORS: Final = (b"leveldb.BytewiseComparator",)
_HAS_POINT_KEYS: Final = 1
_CUSTOM_END, _CUSTOM_UNSAFE = 1, 1 << 6
_TRAILER_BYTES: Final = 8
MARKER: Final = "marker.manifest."


class TableFile(Struct, frozen=True):
    """A sorted table that is in use, with its lowest and highest user key."""

    number: int
    smallest: bytes
    largest: bytes


class Manifest(Struct):
    """The latest state of a database, as its manifest describes it."""

    levels: dict[int, dict[int, TableFile]] = field(default_factory=dict)
    log_number: int = 0
    """Number of the first write-ahead log whose writes may be missing in the tables."""


def find_manifest(path: Path) -> Path:
    """Return the path of the current manifest. Raises `OSError` if the database has no manifest."""
    markers = sorted(path.glob(f"{MARKER}*"), key=lambda marker: int(marker.name.split(".")[2]))
    if markers:
        return path / markers[-1].name.split(".", 3)[3]
    return path / (path / "CURRENT").read_text().strip()


def read_manifest(path: Path) -> Manifest:
    """Read the manifest of a database. Raises `OSError` or `DecodeError`."""
    manifest = Manifest()
    for record in read_records(find_manifest(path).read_bytes()):
        fields = FieldReader(record)
        while not fields.is_at_end():
            _apply(manifest, fields)
    return manifest


def _apply(manifest: Manifest, fields: FieldReader) -> None:
    tag = fields.number()
    if tag == _COMPARATOR:
        name = fields.text()
        if name not in _COMPARATORS:
            raise DecodeError(f"keys are sorted by {name.decode(errors='replace')}")
    elif tag == _LOG_NUMBER:
        manifest.log_number = fields.number()
    elif tag in (_NEXT_FILE, _LAST_SEQUENCE, _PREVIOUS_LOG):
        fields.number()
    elif tag == _COMPACT_POINTER:
        fields.number()
        fields.text()
    elif tag == _DELETED_FILE:
        level = fields.number()
        manifest.levels.get(level, {}).pop(fields.number(), None)
    elif tag in _NEW_FILES:
        level = fields.number()
        table = _table(tag, fields)
        manifest.levels.setdefault(level, {})[table.number] = table
    else:
        raise DecodeError(f"unknown field {tag} of a manifest")


def _table(tag: int, fields: FieldReader) -> TableFile:
    number = fields.number()
    if tag == _NEW_FILE_3:
        fields.number()  # skip the id of the directory that holds the table
    fields.number()  # skip the file size
    smallest = largest = b"\x00" * _TRAILER_BYTES
    has_points = tag != _NEW_FILE_5 or fields.take(1)[0] & _HAS_POINT_KEYS
    if has_points:
        smallest, largest = fields.text(), fields.text()
    if tag == _NEW_FILE_5:  # skip the bounds of range keys
        fields.text()
        fields.text()
    if tag != _NEW_FILE:  # skip the sequence numbers
        fields.number()
        fields.number()
    if tag in (_NEW_FILE_4, _NEW_FILE_5):
        while (custom := fields.number()) != _CUSTOM_END:
            if custom & _CUSTOM_UNSAFE:
                raise DecodeError(f"unknown property {custom} of a table")
            fields.text()
    return TableFile(number, smallest[:-_TRAILER_BYTES], largest[:-_TRAILER_BYTES])
