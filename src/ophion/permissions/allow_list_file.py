"""An allow-list in a file, written atomically (operations.md 10.1, 10.3)."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from ophion.errors import RulesError
from ophion.permissions.entry_codec import EntryCodec
from ophion.permissions.toml_list import TomlList, find_list
from ophion.runtime.operator_files import content_of, table_of, write_whole

T = TypeVar("T")

NOT_PERSISTED: Final = "Unable to persist changes to whitelist configuration file. Changes reverted"
OUT_OF_SYNC: Final = (
    "The permissioning whitelist configuration file is out of sync.  The changes have been applied, but not persisted"
    " to disk"
)


class NotPersisted(RulesError):
    """Raised when the file could not be written. The file is unchanged."""

    def __init__(self, cause: str) -> None:
        super().__init__(NOT_PERSISTED, cause)


class OutOfSync(RulesError):
    """Raised when another program has changed the file since it was read."""

    def __init__(self, path: Path) -> None:
        super().__init__(OUT_OF_SYNC, f"{path} does not hold the list that is in force; it was left as it is")


class RulesFile(Generic[T]):
    """The file of one list. Another list may share the file; each list edits only its own part."""

    def __init__(self, path: Path, codec: EntryCodec[T]) -> None:
        self.path = path
        self.codec = codec

    def read(self) -> dict[T, None]:
        """Return the distinct entries in the order of the file. Raises `RulesError` with the documented text."""
        return self._entries(self._table())

    def _table(self) -> dict[str, Any]:
        try:
            table = table_of(self.path)
        except (OSError, ValueError) as error:
            cause = error.strerror if isinstance(error, OSError) else str(error)
            raise self._unreadable(cause or str(error)) from None
        if not table:
            raise self._unreadable("it is empty")
        return table

    def _entries(self, table: dict[str, Any]) -> dict[T, None]:
        codec = self.codec
        if all(key in table for key in codec.keys):
            raise RulesError(f"{' and '.join(codec.keys)} are one list: only one of them may be in {self.path}")
        texts = self._texts(table)
        if texts is None:
            raise RulesError(f"{codec.keys[0]} config option missing in TOML config file {self.path}")
        entries: dict[T, None] = {}
        for text in texts:
            try:
                entries[codec.read(text)] = None
            except (ValueError, RulesError) as error:
                raise RulesError(codec.complaint(text, error), str(self.path)) from None
        return entries

    def is_read_only(self) -> bool:
        """Whether this process cannot write the file, or its mode is read-only (which does not bind the superuser)."""
        try:
            mode = self.path.stat().st_mode
        except OSError:
            return False
        return not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(self.path, os.W_OK)

    def mark(self) -> object:
        """Return a value that differs after a change of the file, or None if the file does not exist."""
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def place_of(self, item: T) -> str:
        """Return file and line of an entry, or only the file if the entry is not listed."""
        try:
            found = self._found(content_of(self.path).decode())
        except (OSError, ValueError):
            return str(self.path)
        for entry in found.entries:
            if self._is(entry.value, item):
                return f"{self.path}:{found.line_of(entry)}"
        return str(self.path)

    def change(self, present: Collection[T], added: Sequence[T], removed: Collection[T]) -> None:
        """Add the entries `added` to the file and remove the entries `removed`. `present` are the current entries.

        Raises `OutOfSync` if the file no longer holds `present`, `NotPersisted` if the file cannot be written. After an
        error the file is unchanged.
        """
        codec = self.codec
        try:
            table = self._table()
            entries = self._entries(table)
        except RulesError as error:
            raise NotPersisted(error.message) from None
        if entries.keys() != set(present):
            raise OutOfSync(self.path)
        if self.is_read_only():
            raise NotPersisted(f"{self.path} is read-only")
        try:
            # read bytes instead of text, so that line ends do not change
            after = content_of(self.path).decode()
            if removed:
                after = self._found(after).without(lambda text: codec.read(text) in removed)
            if added:
                after = self._found(after).with_added([codec.write(item) for item in added])
            expected = (set(present) - set(removed)) | set(added)
            if not self._differs_only_in_list(table, tomllib.loads(after), expected):
                raise ValueError("the changed text would say something else")
            rewrite(self.path, after)
            if content_of(self.path) != after.encode():
                raise ValueError("the file does not hold what was written")
        except (OSError, ValueError, RulesError) as error:
            raise NotPersisted(f"{self.path}: {error}") from None

    def _found(self, text: str) -> TomlList:
        found = find_list(text, self.codec.keys)
        if found is None:
            raise ValueError(f"{self.codec.keys[0]} is not where it should be")
        return found

    def _is(self, text: str, item: T) -> bool:
        try:
            return self.codec.read(text) == item
        except (ValueError, RulesError):
            return False

    def _texts(self, table: dict[str, Any]) -> list[str] | None:
        for key in self.codec.keys:
            value = table.get(key)
            if value is not None:
                if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
                    raise self._unreadable(f"{key} is not a list of texts")
                return value
        return None

    def _differs_only_in_list(self, old: dict[str, Any], new: dict[str, Any], expected: set[T]) -> bool:
        texts = self._texts(new)
        if texts is None or {self.codec.read(text) for text in texts} != expected:
            return False
        keys = self.codec.keys
        rest = [{key: value for key, value in table.items() if key not in keys} for table in (old, new)]
        return rest[0] == rest[1]

    def _unreadable(self, cause: str) -> RulesError:
        return RulesError(f"Unable to read permissioning TOML config file : {self.path} {cause}")


def rewrite(path: Path, text: str) -> None:
    """Replace the text of an existing file. Keeps symbolic links and the file mode. Raises `OSError`."""
    path = path.resolve()
    write_whole(path, text, stat.S_IMODE(path.stat().st_mode))
