"""Variable-length numbers and byte strings of LevelDB's formats."""

from __future__ import annotations

from ophion.errors import DecodeError

_MAX_VARINT_BYTES = 10


class FieldReader:
    """Reads the fields of a byte string in order. Raises `DecodeError` if the string ends too early."""

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position
        self.end = len(data)

    def is_at_end(self) -> bool:
        """Whether all bytes of the string are read."""
        return self.position >= self.end

    def number(self) -> int:
        """Read a variable-length number."""
        value = shift = 0
        data, position = self.data, self.position
        for _ in range(_MAX_VARINT_BYTES):
            if position >= self.end:
                break
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.position = position
                return value
            shift += 7
        raise DecodeError("not a number", f"byte {self.position}")

    def take(self, size: int) -> bytes:
        """Read `size` bytes of the string."""
        start = self.position
        if start + size > self.end:
            raise DecodeError(f"ends before a field of {size} bytes", f"byte {start}")
        self.position = start + size
        return self.data[start : self.position]

    def text(self) -> bytes:
        """Read a length-prefixed byte string."""
        return self.take(self.number())
