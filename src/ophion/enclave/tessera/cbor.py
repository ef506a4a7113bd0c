"""Decodes the part of CBOR (RFC 8949) that Tessera and Orion write: numbers, byte strings, texts, lists, maps, null."""

from __future__ import annotations

from typing import Any, Final

from ophion.errors import DecodeError

MAX_VALUES: Final = 8192
"""Maximum number of values in one input. A payload of Tessera has a value for each recipient and about 20 more."""
_MAX_DEPTH: Final = 16
_INDEFINITE: Final = 31
_BREAK: Final = 0xFF
_SIMPLE: Final = {20: False, 21: True, 22: None, 23: None}


def decode_cbor(data: bytes) -> Any:
    """Decode bytes that hold one CBOR value. Raises `DecodeError` for invalid bytes."""
    decoder = _Decoder(data)
    value = decoder.value(0)
    if decoder.position != len(data):
        raise DecodeError("CBOR: bytes after the value", f"byte {decoder.position}")
    return value


class _Decoder:
    """Reads CBOR values from a byte string, in order."""

    def __init__(self, data: bytes) -> None:
        self.position = 0
        self._data = data
        self._values = 0

    def value(self, depth: int) -> Any:
        self._values += 1
        if depth > _MAX_DEPTH or self._values > MAX_VALUES:
            raise DecodeError("CBOR: too many values, or nested too deeply", f"byte {self.position}")
        kind, low = divmod(self._take(1)[0], 32)
        if kind == 7:
            if low not in _SIMPLE:
                raise DecodeError("CBOR: not a value of Tessera or Orion", f"byte {self.position - 1}")
            return _SIMPLE[low]
        if low == _INDEFINITE:
            return self._indefinite(kind, depth)
        size = self._argument(low)
        if kind in (0, 1):
            return size if kind == 0 else -1 - size
        if kind in (2, 3):
            content = self._take(size)
            return content if kind == 2 else _text(content)
        if kind == 6:  # kind 6 is a CBOR tag, which is skipped
            return self.value(depth + 1)
        items = [self.value(depth + 1) for _ in range(size if kind == 4 else 2 * size)]
        return items if kind == 4 else _map(items)

    def _indefinite(self, kind: int, depth: int) -> Any:
        items: list[Any] = []
        while self._data[self.position : self.position + 1] != bytes([_BREAK]):
            items.append(self.value(depth + 1))
        self.position += 1
        try:
            return {2: b"".join, 3: "".join, 4: list, 5: _map}[kind](items)  # type: ignore[operator]
        except (KeyError, TypeError):
            raise DecodeError("CBOR: not a value of Tessera or Orion", f"byte {self.position}") from None

    def _argument(self, low: int) -> int:
        if low < 24:
            return low
        if low > 27:
            raise DecodeError("CBOR: a reserved length", f"byte {self.position}")
        return int.from_bytes(self._take(1 << (low - 24)), "big")

    def _take(self, size: int) -> bytes:
        end = self.position + size
        if end > len(self._data):
            raise DecodeError("CBOR: it ends too early", f"byte {self.position}")
        start, self.position = self.position, end
        return self._data[start:end]


def _map(items: list[Any]) -> dict[Any, Any]:
    if len(items) % 2 or not all(isinstance(key, str) for key in items[::2]):
        raise DecodeError("CBOR: a map without text keys")
    return dict(zip(items[::2], items[1::2], strict=True))


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise DecodeError("CBOR: a text that is not UTF-8") from None
