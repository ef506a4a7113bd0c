"""Decodes the part of CBOR (RFC 8949) that Orion writes: numbers, byte strings, texts, lists, maps, null."""

from __future__ import annotations

from typing import Any, Final

from ophion.errors import DecodeError

_MAX_DEPTH: Final = 16
_INDEFINITE: Final = 31
_BREAK: Final = 0xFF
_SIMPLE: Final = {20: False, 21: True, 22: None, 23: None}


def decode_cbor(data: bytes) -> Any:
    """Decode one value. Raises `DecodeError` for invalid bytes."""
    value, end = _value(data, 0, 0)
    if end != len(data):
        raise DecodeError("CBOR: bytes after the value", f"byte {end}")
    return value


def _value(data: bytes, position: int, depth: int) -> tuple[Any, int]:
    if depth > _MAX_DEPTH:
        raise DecodeError("CBOR: nested too deeply")
    kind, low = divmod(_bytes(data, position, 1)[0], 32)
    position += 1
    if kind == 7:
        if low not in _SIMPLE:
            raise DecodeError("CBOR: not a value of Orion", f"byte {position - 1}")
        return _SIMPLE[low], position
    if low == _INDEFINITE:
        return _indefinite(data, kind, position, depth)
    size, position = _argument(data, low, position)
    if kind in (0, 1):
        return (size if kind == 0 else -1 - size), position
    if kind in (2, 3):
        text = _bytes(data, position, size)
        return (text if kind == 2 else _text(text)), position + size
    if kind == 6:  # kind 6 is a CBOR tag, which is skipped
        return _value(data, position, depth + 1)
    items: list[Any] = []
    for _ in range(size if kind == 4 else 2 * size):
        item, position = _value(data, position, depth + 1)
        items.append(item)
    return (items if kind == 4 else _map(items)), position


def _indefinite(data: bytes, kind: int, position: int, depth: int) -> tuple[Any, int]:
    items: list[Any] = []
    while _bytes(data, position, 1)[0] != _BREAK:
        item, position = _value(data, position, depth + 1)
        items.append(item)
    try:
        joined = {2: b"".join, 3: "".join, 4: list, 5: _map}[kind](items)  # type: ignore[operator]
    except (KeyError, TypeError):
        raise DecodeError("CBOR: not a value of Orion", f"byte {position}") from None
    return joined, position + 1


def _map(items: list[Any]) -> dict[Any, Any]:
    if len(items) % 2 or not all(isinstance(key, str) for key in items[::2]):
        raise DecodeError("CBOR: a map without text keys")
    return dict(zip(items[::2], items[1::2], strict=True))


def _argument(data: bytes, low: int, position: int) -> tuple[int, int]:
    if low < 24:
        return low, position
    if low > 27:
        raise DecodeError("CBOR: a reserved length", f"byte {position}")
    width = 1 << (low - 24)
    return int.from_bytes(_bytes(data, position, width), "big"), position + width


def _bytes(data: bytes, position: int, size: int) -> bytes:
    if position + size > len(data):
        raise DecodeError("CBOR: it ends too early", f"byte {position}")
    return data[position : position + size]


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise DecodeError("CBOR: a text that is not UTF-8") from None
