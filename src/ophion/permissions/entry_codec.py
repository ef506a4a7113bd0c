"""What the entries of a list are called, and how they are read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class EntryCodec(Struct, Generic[T], frozen=True):
    """What entries of a list are called, and how they are read and written."""

    one: str
    """account, node"""
    read: Callable[[str], T]
    """Raises `ValueError` or a `DecodeError` for a text that is no entry."""
    write: Callable[[T], str]
    complaint: Callable[[str, Exception], str]
    """What to say about an entry of the file that cannot be read."""

    @property
    def keys(self) -> tuple[str, str]:
        """The original key, and that of later releases; which of them a file uses is kept."""
        return f"{self.one}s-whitelist", f"{self.one}s-allowlist"
