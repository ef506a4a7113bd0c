"""`TesseraPayload`: an encrypted payload in the formats that Tessera sends and stores.

All versions read and write the binary encoding. Versions from 22.1 on also know a CBOR map, which they store.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from ophion.enclave.tessera.cbor import decode_cbor
from ophion.enclave.tessera.fields import LENGTH_BYTES, FieldReader, encode_field, encode_fields, encode_number
from ophion.errors import DecodeError

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 24
BOX_BYTES: Final = 48
_CBOR_MAP: Final = 5
"""Major type of a CBOR map."""
_STANDARD_PRIVATE: Final = b"\x00"
"""The privacy mode of private transactions of Besu; the other modes are those of GoQuorum."""


class TesseraPayload(Struct, frozen=True):
    """An encrypted payload of Tessera or Orion."""

    sender: bytes
    ciphertext: bytes
    nonce: bytes
    box_nonce: bytes
    boxes: tuple[bytes, ...]
    """The symmetric key of the payload, encrypted once for each recipient."""
    recipients: tuple[bytes, ...]
    """Enclave keys of the recipients, in the order of `boxes`; empty if the enclave has not sent these keys."""


def encode_payload(payload: TesseraPayload, group_id: bytes) -> bytes:
    """Encode a payload and the id of its group in Tessera's binary encoding."""
    head = encode_field(payload.sender) + encode_field(payload.ciphertext) + encode_field(payload.nonce)
    boxes = encode_fields(payload.boxes) + encode_field(payload.box_nonce) + encode_fields(payload.recipients)
    no_affected_contracts = encode_number(0)
    return head + boxes + encode_field(_STANDARD_PRIVATE) + no_affected_contracts + encode_field(group_id)


def decode_payload(data: bytes) -> TesseraPayload:
    """Decode a payload in either encoding. Raises `DecodeError` for invalid bytes."""
    if data[:1] and data[0] >> 5 == _CBOR_MAP:
        return _decode_cbor(data)
    if int.from_bytes(data[:LENGTH_BYTES], "big") != KEY_BYTES:
        raise DecodeError("neither the binary nor the CBOR encoding of Tessera")
    fields = FieldReader(data)
    sender, ciphertext, nonce = fields.field(), fields.field(), fields.field()
    boxes, box_nonce = fields.fields(), fields.field()
    # ignore the next field: it holds the group id, which the private transaction in the payload names too
    recipients = () if fields.is_at_end() else fields.fields()
    return checked(TesseraPayload(sender, ciphertext, nonce, box_nonce, boxes, recipients[: len(boxes)]))


def checked(payload: TesseraPayload) -> TesseraPayload:
    """Return the payload unchanged. Raises `DecodeError` if a field has a wrong size or there is no box."""
    sizes = [len(payload.sender) == KEY_BYTES, len(payload.nonce) == NONCE_BYTES, len(payload.box_nonce) == NONCE_BYTES]
    sizes += [len(box) == BOX_BYTES for box in payload.boxes]
    sizes += [len(key) == KEY_BYTES for key in payload.recipients]
    if not all(sizes) or not payload.boxes:
        raise DecodeError("a key, nonce or box has another size than those of Tessera and Orion")
    return payload


def _decode_cbor(data: bytes) -> TesseraPayload:
    """Decode a payload from a CBOR map. Keys of the map that only GoQuorum uses are ignored."""
    content = decode_cbor(data)
    return checked(
        TesseraPayload(
            _bytes(content, "sender"),
            _bytes(content, "cipherText"),
            _bytes(content, "nonce"),
            _bytes(content, "recipientNonce"),
            boxes := _many(content, "recipientBoxes"),
            _many(content, "recipients")[: len(boxes)],
        )
    )


def _bytes(content: dict[str, Any], name: str) -> bytes:
    found = content.get(name)
    if not isinstance(found, bytes):
        raise DecodeError(f"not a payload of Tessera: {name} is missing")
    return found


def _many(content: dict[str, Any], name: str) -> tuple[bytes, ...]:
    found = content.get(name)
    if not isinstance(found, list) or not all(isinstance(one, bytes) for one in found):
        raise DecodeError(f"not a payload of Tessera: {name} is missing")
    return tuple(found)
