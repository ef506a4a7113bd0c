"""Reads payloads and groups from databases of Tessera and Orion.

Tessera has a SQLite database, or a directory with `payloads.csv` and `groups.csv`, exported from PostgreSQL or H2. Each
line has a hash or id, then the content, in hexadecimal. Orion has the directory of its LevelDB.
"""

from __future__ import annotations

import csv
import sqlite3
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, TypeVar

from ophion.enclave.group_record import GroupRecord
from ophion.enclave.tessera.groups import decode_group
from ophion.enclave.tessera.payloads import TesseraPayload, decode_payload
from ophion.errors import CommandError, DecodeError
from ophion.migration.leveldb.database import SortedDatabase, is_sorted_database
from ophion.migration.private.orion_formats import decode_orion_row

T = TypeVar("T")
Row = tuple[bytes, bytes]

_PAYLOADS: Final = "SELECT HASH, ENCODED_PAYLOAD FROM ENCRYPTED_TRANSACTION"
_GROUPS: Final = "SELECT ID, DATA FROM PRIVACY_GROUP"


class OldEnclave:
    """The whole content of a Tessera or Orion enclave: payloads by key, and groups."""

    def __init__(
        self, payloads: list[tuple[bytes, TesseraPayload | DecodeError]], groups: list[GroupRecord], unread: int
    ) -> None:
        self.payloads = payloads
        self.groups = groups
        self.unread_groups = unread
        """Number of groups that could not be decoded. Payloads of these groups are refused."""


def read_tessera(path: Path) -> OldEnclave:
    """Read a SQLite database or a directory of exports. Raises `CommandError` if this fails."""
    if path.is_dir():
        payloads, groups = list(_csv_rows(path / "payloads.csv")), []
        if (path / "groups.csv").exists():
            groups = list(_csv_rows(path / "groups.csv"))
    else:
        payloads, groups = _sqlite_rows(path)
    decoded = [_decoded(data, decode_group) for _, data in groups]
    known = [group for group in decoded if isinstance(group, GroupRecord)]
    return OldEnclave(
        [(key, _decoded(data, decode_payload)) for key, data in payloads], known, len(decoded) - len(known)
    )


def read_orion(path: Path) -> OldEnclave:
    """Read the LevelDB of a stopped Orion. Raises `CommandError` if this fails."""
    place = next((found for found in (path, path / "routerdb") if is_sorted_database(found)), None)
    if place is None:
        raise CommandError(f"There is no LevelDB of Orion in {path}: give the directory of its option `storage`.")
    payloads: list[tuple[bytes, TesseraPayload | DecodeError]] = []
    groups: list[GroupRecord] = []
    unread = 0
    with closing(SortedDatabase(place, "Orion")) as database:
        for name, data in database.items():
            found = _decoded(data, decode_orion_row)
            if isinstance(found, GroupRecord):
                groups.append(found)
            elif isinstance(found, TesseraPayload):
                payloads.append((b64decode(name), found))
            elif found is not None:
                unread += 1
    return OldEnclave(payloads, groups, unread)


def _decoded(data: bytes, decode: Callable[[bytes], T]) -> T | DecodeError:
    try:
        return decode(data)
    except DecodeError as error:
        return error
    except ValueError as error:
        return DecodeError(str(error))


def _csv_rows(file: Path) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)
    try:
        with file.open(newline="") as lines:
            for number, cells in enumerate(csv.reader(lines), 1):
                try:
                    key, data = (bytes.fromhex(cell.removeprefix("\\x").removeprefix("0x")) for cell in cells)
                except ValueError:
                    if number == 1:  # skip the line with the column names
                        continue
                    raise CommandError(f"{file}, line {number}: expected two hexadecimal columns.") from None
                yield key, data
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise CommandError(f"Unable to read {file}: {error}") from None


def _sqlite_rows(file: Path) -> tuple[list[Row], list[Row]]:
    if not file.is_file():
        raise CommandError(f"There is no file or directory {file}.")
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            payloads = [(bytes(key), bytes(data)) for key, data in database.execute(_PAYLOADS)]
            has_groups = database.execute("SELECT 1 FROM sqlite_master WHERE upper(name) = 'PRIVACY_GROUP'").fetchone()
            groups = [(bytes(key), bytes(data)) for key, data in database.execute(_GROUPS)] if has_groups else []
    except (sqlite3.Error, TypeError) as error:
        raise CommandError(
            f"Unable to read {file} as a SQLite database of Tessera: {error}. Export an H2 or PostgreSQL database:"
            " docs/migration/private-state.md."
        ) from None
    return payloads, groups
