"""Payloads and groups as Orion stores them: CBOR maps. `ophion.enclave.tessera` has the formats of Tessera."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from ophion.enclave.group_record import GroupRecord
from ophion.enclave.tessera.cbor import decode_cbor
from ophion.enclave.tessera.groups import group_of
from ophion.enclave.tessera.payloads import NONCE_BYTES, TesseraPayload, checked
from ophion.errors import DecodeError


def decode_orion_payload(content: dict[str, Any]) -> TesseraPayload:
    """Decode an encrypted payload of Orion. Its ciphertext uses a nonce of zeros."""
    try:
        boxes = tuple(bytes(key["encoded"]) for key in content["encryptedKeys"])
        sender, nonce, ciphertext = content["sender"], bytes(content["nonce"]), bytes(content["cipherText"])
        key = b64decode(sender, validate=True) if isinstance(sender, str) else bytes(sender)
    except (KeyError, TypeError, ValueError) as error:
        raise DecodeError(f"not a payload of Orion: {error}") from None
    return checked(TesseraPayload(key, ciphertext, bytes(NONCE_BYTES), nonce, boxes, ()))


def decode_orion_group(content: dict[str, Any]) -> GroupRecord:
    """Decode a privacy group of Orion."""
    try:
        members = tuple(b64decode(text, validate=True) for text in content["addresses"])
        seed = bytes(content.get("randomSeed") or b"")
        name, description = str(content.get("name") or ""), str(content.get("description") or "")
        return group_of(name, description, members, seed, str(content["type"]), str(content["state"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DecodeError(f"not a group of Orion: {error}") from None


def decode_orion_row(data: bytes) -> TesseraPayload | GroupRecord | None:
    """Decode a value of Orion's database. Returns None if the value is neither a payload nor a group."""
    content = decode_cbor(data)
    if isinstance(content, dict) and "cipherText" in content:
        return decode_orion_payload(content)
    if isinstance(content, dict) and "addresses" in content and "type" in content:
        return decode_orion_group(content)
    return None
