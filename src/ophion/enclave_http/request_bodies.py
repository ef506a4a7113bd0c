"""Parses request bodies of the enclave's HTTP interface strictly. Raises `BadRequestBody` with an error code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from ophion.enclave.encoding import read_base64, read_key
from ophion.enclave.interface import MAX_MEMBERS
from ophion.native.messages import json_outline


class BadRequestBody(Exception):
    """A request is invalid. The client receives `code`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


INVALID: Final = "InvalidPayload"
BAD_KEY: Final = "EnclaveDecodePublicKey"
_MAX_VALUES: Final = 4 * MAX_MEMBERS


class RequestBody:
    """Reads the keys of a JSON request body."""

    def __init__(self, body: bytes) -> None:
        if not has_few_values(body, _MAX_VALUES):
            raise BadRequestBody(INVALID)
        try:
            members = orjson.loads(body)
        except orjson.JSONDecodeError:
            raise BadRequestBody(INVALID) from None
        if not isinstance(members, dict):
            raise BadRequestBody(INVALID)
        self._members: Mapping[str, Any] = members

    def has(self, name: str) -> bool:
        """Whether a JSON key is present and not null."""
        return self._members.get(name) is not None

    def key(self, name: str) -> bytes:
        """Read 32 bytes in base64 from a JSON key."""
        return _key(self._members.get(name))

    def optional_key(self, name: str) -> bytes | None:
        """Read 32 bytes in base64 from a JSON key; None if the key is absent."""
        return self.key(name) if self.has(name) else None

    def keys(self, name: str) -> list[bytes]:
        """Read a list of enclave keys from a JSON key; empty if the JSON key is absent."""
        values = self._members.get(name) or []
        if not isinstance(values, list) or len(values) > MAX_MEMBERS:
            raise BadRequestBody(BAD_KEY)
        return [_key(value) for value in values]

    def data(self, name: str) -> bytes:
        """Read bytes in base64 from a JSON key."""
        try:
            return read_base64(self._members.get(name))
        except ValueError:
            raise BadRequestBody(INVALID) from None

    def text(self, name: str) -> str:
        """Read a text from a JSON key; empty if the key is absent."""
        value = self._members.get(name) or ""
        if not isinstance(value, str):
            raise BadRequestBody(INVALID)
        return value


def has_few_values(body: bytes, most: int) -> bool:
    """Whether a text is JSON with at most `most` values, including keys.

    Callers check this before parsing. Parsing a megabyte of empty lists takes far more memory than the text and holds
    the interpreter lock.
    """
    outline = json_outline(body, 0)
    return outline is not None and outline.values <= most


def header_keys(value: bytes | None) -> list[bytes]:
    """Read the comma-separated enclave keys in the value of an HTTP header."""
    texts = [] if not value else value.decode("latin-1").split(",")
    if len(texts) > MAX_MEMBERS:
        raise BadRequestBody(BAD_KEY)
    return [_key(text.strip()) for text in texts]


def _key(value: object) -> bytes:
    try:
        return read_key(value)
    except ValueError:
        raise BadRequestBody(BAD_KEY) from None
