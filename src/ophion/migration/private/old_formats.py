"""Payloads and groups as Tessera and Orion store them.

Tessera up to version 21 writes fields in sequence, each after its length in 8 bytes. Later versions and Orion write
CBOR maps.
"""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final

from msgspec import Struct

from ophion.enclave.group_record import LEGACY_DESCRIPTION, LEGACY_NAME, GroupRecord
from ophion.enclave.interface import GroupType
from ophion.errors import DecodeError
from ophion.migration.private.cbor import decode_cbor

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 24
BOX_BYTES: Final = 48
_LENGTH_BYTES: Final = 8
_MAX_ITEMS: Final = 4096
_CBOR_MAP: Final = 5
"""Major type of a CBOR map."""


class OldPayload(Struct, frozen=True):
    """An encrypted payload of Tessera or Orion."""

    sender: bytes
    ciphertext: bytes
    nonce: bytes
    box_nonce: bytes
    boxes: tuple[bytes, ...]
    """The symmetric key of the payload, sealed for each recipient."""
    recipients: tuple[bytes, ...]
    """Owners of the boxes, in the order of the boxes; empty if the old enclave did not store them."""


class _Fields:
    """Reads fields of Tessera's encoding, each after its length."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def is_at_end(self) -> bool:
        return self._position == len(self._data)

    def number(self) -> int:
        return int.from_bytes(self._take(_LENGTH_BYTES), "big")

    def field(self) -> bytes:
        return self._take(self.number())

    def fields(self) -> tuple[bytes, ...]:
        count = self.number()
        if count > _MAX_ITEMS:
            raise DecodeError(f"{count} items in a list", f"byte {self._position}")
        return tuple(self.field() for _ in range(count))

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise DecodeError(f"it ends before a field of {size} bytes", f"byte {self._position}")
        start, self._position = self._position, end
        return self._data[start:end]


def decode_tessera_payload(data: bytes) -> OldPayload:
    """Decode the column ENCODED_PAYLOAD of Tessera. Raises `DecodeError` for invalid bytes."""
    if data[:1] and data[0] >> 5 == _CBOR_MAP:
        return _tessera_cbor(data)
    if int.from_bytes(data[:_LENGTH_BYTES], "big") != KEY_BYTES:
        raise DecodeError("neither the binary nor the CBOR encoding of Tessera")
    fields = _Fields(data)
    sender, ciphertext, nonce = fields.field(), fields.field(), fields.field()
    boxes, box_nonce = fields.fields(), fields.field()
    # the fields after the recipients exist only in records of GoQuorum
    recipients = () if fields.is_at_end() else fields.fields()
    return _checked(OldPayload(sender, ciphertext, nonce, box_nonce, boxes, recipients[: len(boxes)]))


def _tessera_cbor(data: bytes) -> OldPayload:
    """Decode the CBOR map that newer versions of Tessera write. Keys of the map that only GoQuorum uses are ignored."""
    content = decode_cbor(data)
    try:
        sender, ciphertext, nonce = (bytes(content[name]) for name in ("sender", "cipherText", "nonce"))
        boxes = tuple(map(bytes, content["recipientBoxes"]))
        recipients = tuple(map(bytes, content["recipients"]))
        box_nonce = bytes(content["recipientNonce"])
    except (KeyError, TypeError, ValueError) as error:
        raise DecodeError(f"not a payload of Tessera: {error}") from None
    return _checked(OldPayload(sender, ciphertext, nonce, box_nonce, boxes, recipients[: len(boxes)]))


def decode_orion_payload(content: dict[str, Any]) -> OldPayload:
    """Decode an encrypted payload of Orion. Its ciphertext uses a nonce of zeros."""
    try:
        boxes = tuple(bytes(key["encoded"]) for key in content["encryptedKeys"])
        sender, nonce, ciphertext = content["sender"], bytes(content["nonce"]), bytes(content["cipherText"])
        key = b64decode(sender, validate=True) if isinstance(sender, str) else bytes(sender)
    except (KeyError, TypeError, ValueError) as error:
        raise DecodeError(f"not a payload of Orion: {error}") from None
    return _checked(OldPayload(key, ciphertext, bytes(NONCE_BYTES), nonce, boxes, ()))


def _checked(payload: OldPayload) -> OldPayload:
    sizes = [len(payload.sender) == KEY_BYTES, len(payload.nonce) == NONCE_BYTES, len(payload.box_nonce) == NONCE_BYTES]
    sizes += [len(box) == BOX_BYTES for box in payload.boxes]
    sizes += [len(key) == KEY_BYTES for key in payload.recipients]
    if not all(sizes) or not payload.boxes:
        raise DecodeError("a key, nonce or box has another size than those of Tessera and Orion")
    return payload


def decode_tessera_group(data: bytes) -> GroupRecord:
    """Decode the column DATA of Tessera's table PRIVACY_GROUP."""
    fields = _Fields(data)
    name, description, members, seed = fields.field(), fields.field(), fields.fields(), fields.field()
    kind, state = fields.field(), fields.field()
    return _group(name.decode(), description.decode(), members, seed, kind.decode(), state.decode())


def decode_orion_group(content: dict[str, Any]) -> GroupRecord:
    """Decode a privacy group of Orion."""
    try:
        members = tuple(b64decode(text, validate=True) for text in content["addresses"])
        seed = bytes(content.get("randomSeed") or b"")
        name, description = str(content.get("name") or ""), str(content.get("description") or "")
        return _group(name, description, members, seed, str(content["type"]), str(content["state"]))
    except (KeyError, TypeError, ValueError) as error:
        raise DecodeError(f"not a group of Orion: {error}") from None


def _group(name: str, description: str, members: tuple[bytes, ...], seed: bytes, kind: str, state: str) -> GroupRecord:
    if kind == GroupType.LEGACY.value:
        return legacy_group(members)
    if kind != GroupType.PANTHEON.value:
        raise DecodeError(f"groups of type {kind} are not supported")
    found = GroupRecord(GroupType.PANTHEON, name, description, members, seed, members[0], state == "ACTIVE")
    return GroupRecord.decode(found.encode())  # decode the encoded record, because `decode` checks every field


def legacy_group(members: tuple[bytes, ...]) -> GroupRecord:
    """Return the legacy group of `privateFrom` and `privateFor`."""
    unique = tuple(dict.fromkeys(members))
    return GroupRecord.decode(
        GroupRecord(GroupType.LEGACY, LEGACY_NAME, LEGACY_DESCRIPTION, unique, b"", unique[0]).encode()
    )


def decode_orion_row(data: bytes) -> OldPayload | GroupRecord | None:
    """Decode a value of Orion's database. Returns None if the value is neither a payload nor a group."""
    content = decode_cbor(data)
    if isinstance(content, dict) and "cipherText" in content:
        return decode_orion_payload(content)
    if isinstance(content, dict) and "addresses" in content and "type" in content:
        return decode_orion_group(content)
    return None
