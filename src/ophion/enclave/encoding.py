"""Converts enclave keys, ids and groups to and from base64 and JSON."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, Final

from ophion.enclave.interface import KEY_SIZE, Group

MAX_REMOTE_TEXT: Final = 256
"""Maximum number of characters of another enclave's text in logs and errors."""


def base64_text(value: bytes) -> str:
    """Encode bytes as base64 text."""
    return b64encode(value).decode()


def read_base64(text: object) -> bytes:
    """Decode strict base64. Raises `ValueError` for other input."""
    if not isinstance(text, str):
        raise ValueError("not a text")
    return b64decode(text, validate=True)


def read_key(text: object) -> bytes:
    """Decode a key, payload key or group id from base64. Raises `ValueError` for other input."""
    return read_exactly(text, KEY_SIZE)


def read_exactly(text: object, size: int) -> bytes:
    """Decode base64 of exactly `size` bytes. Raises `ValueError` for other input."""
    value = read_base64(text)
    if len(value) != size:
        raise ValueError(f"not {size} bytes")
    return value


def group_object(group: Group) -> dict[str, Any]:
    """Return a group as a JSON-RPC object."""
    return {
        "privacyGroupId": base64_text(group.id),
        "name": group.name,
        "description": group.description,
        "type": group.type.value,
        "members": [base64_text(member) for member in group.members],
    }


def printable(text: str) -> str:
    """Return text from another enclave for logs and errors: shortened, without control characters."""
    shown = text if len(text) <= MAX_REMOTE_TEXT else text[:MAX_REMOTE_TEXT] + "…"
    return shown if shown.isprintable() else shown.encode("unicode_escape").decode("ascii")
