"""Hexadecimal text: DATA, QUANTITY and lenient parsing.

DATA keeps its length (`0x`, `0x00ff`), QUANTITY has no leading zeros (`0x0`, `0xff`). `parse_data_lenient` and
`parse_number` read files and command lines. The schemas of JSON-RPC requests are stricter. Invalid text raises
`HexError`, which includes the text.
"""

from __future__ import annotations

from typing import Final

from ophion.errors import DecodeError

_HEX_DIGITS: Final = frozenset("0123456789abcdefABCDEF")
_SHOWN: Final = 80


class HexError(DecodeError):
    """Raised for text that is not a valid hexadecimal value or number."""

    def __init__(self, problem: str, text: str) -> None:
        self.problem = problem
        self.text = text
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
        super().__init__(f"{problem}: {shown!r}")


def data(value: bytes) -> str:
    """Format bytes as DATA: `0x` and two digits for each byte."""
    return "0x" + value.hex()


def quantity(value: int) -> str:
    """Format an integer as QUANTITY: `0x` and no leading zeros. Raises `ValueError` for negative values."""
    if value < 0:
        raise ValueError(f"a quantity cannot be negative: {value}")
    return hex(value)


def parse_data_lenient(text: str, size: int | None = None) -> bytes:
    """Parse DATA with an optional prefix and digits of either case."""
    return _sized(_from_digits(strip_prefix(text), text), size, text)


def parse_number(text: str, bits: int = 256) -> int:
    """Parse an unsigned number in the forms that Pantheon 1.2 accepts.

    `0x10` and `#10` are hexadecimal, `010` is octal, and other numbers are decimal.
    """
    if text[:2] in ("0x", "0X"):
        return _bounded(_hex_int(text[2:], text), bits, text)
    if text.startswith("#"):
        return _bounded(_hex_int(text[1:], text), bits, text)
    if not text.isascii() or not text.isdigit():
        raise HexError("not a number", text)
    if len(text) > _SHOWN:
        raise HexError(f"a number wider than {bits} bits", text)
    if text[0] == "0" and len(text) > 1:
        try:
            return _bounded(int(text, 8), bits, text)
        except ValueError:
            raise HexError("not an octal number", text) from None
    return _bounded(int(text), bits, text)


def strip_prefix(text: str) -> str:
    """Return the digits after an optional `0x` or `0X`."""
    return text[2:] if text[:2] in ("0x", "0X") else text


def _hex_int(digits: str, text: str) -> int:
    # check the digits first, because int(..., 16) accepts underscores, spaces, signs and a second prefix
    if not digits or not _HEX_DIGITS.issuperset(digits):
        raise HexError("not a hexadecimal number", text)
    return int(digits, 16)


def _from_digits(digits: str, text: str) -> bytes:
    # check the digits first, because bytes.fromhex skips spaces between bytes
    if not _HEX_DIGITS.issuperset(digits):
        raise HexError("hex data with a character that is no hex digit", text)
    if len(digits) % 2:
        raise HexError("hex data with an odd number of digits", text)
    return bytes.fromhex(digits)


def _sized(value: bytes, size: int | None, text: str) -> bytes:
    if size is not None and len(value) != size:
        raise HexError(f"hex data must have {size} bytes and has {len(value)}", text)
    return value


def _bounded(value: int, bits: int, text: str) -> int:
    if value.bit_length() > bits:
        raise HexError(f"a number wider than {bits} bits", text)
    return value
