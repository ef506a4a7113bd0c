"""Keys, ids and groups as files, tools and clients write them: base64, and JSON around it."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any, Final

from ophion.enclave.interface import KEY_SIZE, Group

MAX_REMOTE_TEXT: Final = 256
"""Characters of another enclave's text that are shown."""


def base64_text(value: bytes) -> str:
    """Bytes as people write them."""
    return b64encode(value).decode()


def read_base64(text: object) -> bytes:
    """Strict base64; `ValueError` for anything else."""
    if not isinstance(text, str):
        raise ValueError("not a text")
    return b64decode(text, validate=True)


def read_key(text: object) -> bytes:
    """A key, payload key or group id in base64; `ValueError` for anything else."""
    return read_exactly(text, KEY_SIZE)


def read_exactly(text: object, size: int) -> bytes:
    """So many bytes in base64; `ValueError` for anything else."""
    value = read_base64(text)
    if len(value) != size:
        raise ValueError(f"not {size} bytes")
    return value


def group_object(group: Group) -> dict[str, Any]:
    """A group as clients see it."""
    return {
        "privacyGroupId": base64_text(group.id),
        "name": group.name,
        "description": group.description,
        "type": group.type.value,
        "members": [base64_text(member) for member in group.members],
    }


def printable(text: str) -> str:
    """A text of another enclave for logs and errors: bounded, without control characters."""
    shown = text if len(text) <= MAX_REMOTE_TEXT else text[:MAX_REMOTE_TEXT] + "…"
    return shown if shown.isprintable() else shown.encode("unicode_escape").decode("ascii")
