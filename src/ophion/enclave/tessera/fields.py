"""The binary encoding of Tessera: every field after its length in 8 bytes, every list after its number of fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ophion.errors import DecodeError

LENGTH_BYTES: Final = 8
MAX_ITEMS: Final = 4096
"""Maximum number of fields in a list."""


class FieldReader:
    """Reads fields in sequence. Raises `DecodeError` for bytes that are not in this encoding."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def is_at_end(self) -> bool:
        """Whether all bytes are read."""
        return self._position == len(self._data)

    def number(self) -> int:
        """Read a length or a count."""
        return int.from_bytes(self._take(LENGTH_BYTES), "big")

    def count(self) -> int:
        """Read the number of items of a list."""
        count = self.number()
        if count > MAX_ITEMS:
            raise DecodeError(f"{count} items in a list", f"byte {self._position}")
        return count

    def field(self) -> bytes:
        """Read one field."""
        return self._take(self.number())

    def text(self) -> str:
        """Read one field that holds UTF-8."""
        try:
            return self.field().decode()
        except UnicodeDecodeError:
            raise DecodeError("a text that is not UTF-8", f"byte {self._position}") from None

    def fields(self) -> tuple[bytes, ...]:
        """Read a list of fields."""
        return tuple(self.field() for _ in range(self.count()))

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise DecodeError(f"it ends before a field of {size} bytes", f"byte {self._position}")
        start, self._position = self._position, end
        return self._data[start:end]


def encode_number(number: int) -> bytes:
    """Encode a length or a count."""
    return number.to_bytes(LENGTH_BYTES, "big")


def encode_field(data: bytes) -> bytes:
    """Encode one field."""
    return encode_number(len(data)) + data


def encode_fields(items: Sequence[bytes]) -> bytes:
    """Encode a list of fields."""
    return encode_number(len(items)) + b"".join(map(encode_field, items))
