"""Opens a RocksDB database of another client without writing to the client's directory."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ophion.errors import CommandError
from ophion.migration.block_source import optional_package
from ophion.migration.rocksdb_logs import missing_end, recycles_logs
from ophion.migration.source_lock import SourceLock

_OWN_FILES: Final = ("LOCK", "LOG", "rocksdict-config.json")
_MAX_OPEN_FILES: Final = 256
_NO_SPACE: Final = os.strerror(errno.ENOSPC)
_ADVICE: Final = "Check the permissions of its files, or copy the directory again while its node is stopped."


class RocksDatabase:
    """A read-only RocksDB database.

    RocksDB and its Python package write files next to the database that they open. So this class opens another
    directory, which has links to the files of the source.
    """

    def __init__(self, path: Path, links: Path, client: str) -> None:
        """Open the database. `links` is the directory for the links. An existing directory is replaced, and `close`
        removes the directory.
        """
        package = optional_package("rocksdict", f"Reading the database of {client}")
        self._lock = SourceLock(path / "LOCK", client)
        self._links = links
        self._path = path
        self._database: Any = None
        self.warning: str | None = None
        """Why the newest writes of the node may be missing, or None."""
        try:
            self.warning = missing_end(path)
            _link_files(path.resolve(), links)
            names = package.Rdict.list_cf(str(links))
            options = package.Options(raw_mode=True)
            options.set_max_open_files(_MAX_OPEN_FILES)
            if not recycles_logs(path):
                # refuse a damaged log: by default, RocksDB reads it up to the damage, and the newest blocks would be
                # missing
                options.set_wal_recovery_mode(package.DBRecoveryMode.absolute_consistency())
            families = {name: package.Options(raw_mode=True) for name in names}
            self._database = package.Rdict(
                str(links), options=options, column_families=families, access_type=package.AccessType.read_only()
            )
            self._families = {name: self._database.get_column_family(name) for name in names}
        except OSError as error:
            self.close()
            raise CommandError(f"Unable to read the database {path} through {links}: {error.strerror}") from error
        except Exception as error:
            self.close()
            if isinstance(error, CommandError):
                raise
            why = _in_one_line(error).replace(str(links), str(path))
            advice = f"Free space for {links.parent}." if _NO_SPACE in why else _ADVICE
            raise CommandError(f"Unable to open the RocksDB database {path}: {why}. {advice}") from error

    @property
    def families(self) -> frozenset[str]:
        """Names of the column families."""
        return frozenset(self._families)

    def get(self, family: str, key: bytes) -> bytes | None:
        """Return a value, or None if the key or the family is missing."""
        return self.get_many(family, [key])[0]

    def get_many(self, family: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of several keys, with None for each missing key."""
        found = self._families.get(family)
        if found is None:
            return [None] * len(keys)
        try:
            values: list[bytes | None] = found.get(list(keys))
        except Exception as error:
            why = _in_one_line(error).replace(str(self._links), str(self._path))
            raise CommandError(f"The RocksDB database {self._path} is damaged: {why}. {_ADVICE}") from error
        return values

    def close(self) -> None:
        """Close the database, remove the links, release the lock."""
        if self._database is not None:
            self._families = {}
            self._database.close()
            self._database = None
        shutil.rmtree(self._links, ignore_errors=True)
        self._lock.close()


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _link_files(path: Path, links: Path) -> None:
    if links.is_dir() and not links.is_symlink():
        shutil.rmtree(links)
    else:
        links.unlink(missing_ok=True)
    links.mkdir(parents=True)
    for entry in os.scandir(path):
        if entry.is_file() and entry.name not in _OWN_FILES and not entry.name.startswith("LOG.old"):
            os.symlink(entry.path, links / entry.name)
