"""Converts addresses between text with checksum (EIP-55) and bytes."""

from __future__ import annotations

from functools import lru_cache

from ophion.errors import AbiError
from ophion.native.crypto import keccak256


@lru_cache(65536)
def checksum_address(address: bytes) -> str:
    """Return an address as text with the mixed-case checksum of EIP-55."""
    digits = address.hex()
    digest = keccak256(digits.encode()).hex()
    return "0x" + "".join(
        digit.upper() if int(check, 16) >= 8 else digit for digit, check in zip(digits, digest, strict=False)
    )


def address_bytes(value: object) -> bytes:
    """Return the 20 bytes of an address, given as text, bytes, or an object with an attribute `address`."""
    if isinstance(value, str):
        return _address_of_text(str(value))
    if isinstance(value, bytes | bytearray) and len(value) == 20:
        return bytes(value)
    inner = getattr(value, "address", None)
    if inner is None:
        raise AbiError(f"{shortened(value)} is not an address")
    return address_bytes(inner)


@lru_cache(65536)
def _address_of_text(text: str) -> bytes:
    try:
        found = bytes.fromhex(text[2:]) if text[:2] in ("0x", "0X") else b""
    except ValueError:
        found = b""
    if len(found) != 20:
        raise AbiError(f"{shortened(text)} is not an address")
    return found


def shortened(value: object) -> str:
    """Return a value as text for an error message, at most 80 characters long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
