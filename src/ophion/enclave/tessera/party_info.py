"""`PartyInfo`: the message in which enclaves of Tessera tell each other their URLs and keys."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

import orjson
from msgspec import Struct

from ophion.enclave.encoding import base64_text, read_key
from ophion.enclave.tessera.fields import FieldReader, encode_field, encode_fields, encode_number
from ophion.enclave.tessera.payloads import KEY_BYTES
from ophion.errors import DecodeError
from ophion.native.messages import json_outline
from ophion.runtime.options import is_url

MAX_INFO_BYTES: Final = 512 * 1024
"""Maximum size of a party info in bytes. 1,000 keys with their URLs take a tenth of this size."""
MAX_URL_BYTES: Final = 1024
_MAX_VALUES: Final = 65_536
"""Maximum number of JSON values in a party info. Each key with its URL counts as five values."""


class PartyInfo(Struct, frozen=True):
    """What one enclave of Tessera tells another: its own URL, enclave keys with URLs, and URLs of further enclaves."""

    url: str
    keys: tuple[tuple[bytes, str], ...]
    """Enclave keys, each with the URL of its enclave."""
    parties: tuple[str, ...]

    def encode(self) -> bytes:
        """Encode this info in Tessera's binary encoding, as the body of `POST /partyinfo`."""
        keys = b"".join(encode_field(key) + encode_field(url.encode()) for key, url in self.keys)
        parties = encode_fields([url.encode() for url in self.parties])
        return encode_field(self.url.encode()) + encode_number(len(self.keys)) + keys + parties

    @classmethod
    def decode(cls, data: bytes) -> PartyInfo:
        """Decode a party info in Tessera's binary encoding. Raises `DecodeError` for invalid bytes."""
        if len(data) > MAX_INFO_BYTES:
            raise DecodeError(f"a party info of more than {MAX_INFO_BYTES} bytes")
        fields = FieldReader(data)
        url = normal_url(fields.text())
        keys = tuple((_key(fields.field()), normal_url(fields.text())) for _ in range(fields.count()))
        return cls(url, keys, tuple(normal_url(fields.text()) for _ in range(fields.count())))

    def encode_json(self) -> bytes:
        """Encode this info as JSON, as the response to `GET /partyinfo`."""
        keys = [{"key": base64_text(key), "url": url} for key, url in self.keys]
        return orjson.dumps({"url": self.url, "peers": [{"url": url} for url in self.parties], "keys": keys})

    @classmethod
    def decode_json(cls, data: bytes) -> PartyInfo:
        """Decode the answer to `GET /partyinfo`. Raises `DecodeError` for other input."""
        try:
            outline = json_outline(data, 0) if len(data) <= MAX_INFO_BYTES else None
            if outline is None or outline.values > _MAX_VALUES:
                raise ValueError
            content: Any = orjson.loads(data)
            keys = tuple((read_key(one["key"]), normal_url(one["url"])) for one in content["keys"])
            return cls(normal_url(content["url"]), keys, tuple(normal_url(one["url"]) for one in content["peers"]))
        except (ValueError, KeyError, TypeError):
            raise DecodeError("not a party info of Tessera") from None

    def keys_of(self, url: str) -> list[bytes]:
        """Return the enclave keys that this party info lists for one URL."""
        return [key for key, owner in self.keys if owner == url]


def normal_url(url: object) -> str:
    """Return the URL with a path (`/` if it has none), because Tessera compares URLs in this form. Raises `DecodeError`
    for a text that is not an HTTP URL.
    """
    if not isinstance(url, str) or len(url) > MAX_URL_BYTES or not url.isascii() or not url.isprintable():
        raise DecodeError("not a URL of an enclave")
    if " " in url or not is_url(url, "http", "https"):
        raise DecodeError("not a URL of an enclave")
    return url if urlsplit(url).path else url + "/"


def _key(key: bytes) -> bytes:
    if len(key) != KEY_BYTES:
        raise DecodeError(f"a key of {KEY_BYTES} bytes is expected")
    return key
