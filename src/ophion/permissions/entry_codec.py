"""Reads, writes and names the entries of permission lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class EntryCodec(Struct, Generic[T], frozen=True):
    """Reads and writes the entries of one kind of list."""

    one: str
    """What an entry is called in TOML keys and messages: account or node."""
    read: Callable[[str], T]
    """Parses an entry. Raises `ValueError` or a `DecodeError` for text that is not an entry."""
    write: Callable[[T], str]
    complaint: Callable[[str, Exception], str]
    """Returns the error message about an invalid entry in the file."""

    @property
    def keys(self) -> tuple[str, str]:
        """TOML keys of the list: the key of Pantheon 1.2 and the key of Besu. A file keeps the key that it uses."""
        return f"{self.one}s-whitelist", f"{self.one}s-allowlist"
