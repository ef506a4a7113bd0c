"""Payloads of Tessera as sealed records of Ophion (native/enclave/src/sealed_payload.rs), and back.

Tessera gives a recipient its own box only. A record names all members of the group, so the boxes of the other members
are absent: 48 zero bytes, which open with no key.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import MAX_MEMBERS
from ophion.enclave.tessera.groups import legacy_group
from ophion.enclave.tessera.payloads import BOX_BYTES, KEY_BYTES, NONCE_BYTES, TesseraPayload
from ophion.errors import DecodeError
from ophion.native.enclave import EnclaveKeyring, read_sealed
from ophion.native.exceptions import translated
from ophion.primitives import rlp

ABSENT_BOX: Final = bytes(BOX_BYTES)
_VERSION: Final = 1
_HEAD_BYTES: Final = 1 + KEY_BYTES + NONCE_BYTES + NONCE_BYTES + KEY_BYTES
_COUNT_BYTES: Final = 2
_ENTRY_BYTES: Final = KEY_BYTES + BOX_BYTES
_MAX_ITEMS: Final = 32 + MAX_MEMBERS
"""Maximum number of RLP items in a private transaction. It names at most the members of a group."""
_PRIVATE_FROM, _PRIVATE_FOR, _PRIVATE_FIELDS = 9, 10, 12


def encode_record(
    payload: TesseraPayload, group: bytes, boxes: Mapping[bytes, bytes], members: int | None = None
) -> bytes:
    """Encode a sealed record. The first `members` owners of the boxes form the group, by default all of them."""
    count = len(boxes).to_bytes(_COUNT_BYTES, "big")
    member_count = count if members is None else members.to_bytes(_COUNT_BYTES, "big")
    head = bytes([_VERSION]) + payload.sender + payload.box_nonce + payload.nonce + group + count + member_count
    record = head + b"".join(recipient + box for recipient, box in boxes.items()) + payload.ciphertext
    with translated():
        read_sealed(record)
    return record


def member_record(payload: TesseraPayload, group: GroupRecord, own: bytes, box: bytes) -> bytes:
    """Return the record of a payload that a local key opens. An owner outside of the group gets a copy."""
    boxes = dict(zip(payload.recipients, payload.boxes, strict=False)) | {own: box}
    entries = {member: boxes.get(member, ABSENT_BOX) for member in group.members}
    return encode_record(payload, group.id, entries | {own: box}, len(entries))


def opened(keyring: EnclaveKeyring, payload: TesseraPayload) -> tuple[bytes, bytes, bytes]:
    """Return a local key, its box and the plain text. Raises `DecodeError` if no local key opens the payload.

    A payload that names its recipients is opened with their keys alone. Orion does not name them, so all are tried.
    """
    named = dict(zip(payload.recipients, payload.boxes, strict=False))
    for own in keyring.public_keys:
        for box in (named[own],) if own in named else () if named else payload.boxes:
            text = keyring.open(encode_record(payload, bytes(KEY_BYTES), {own: box}))
            if text is not None:
                return own, box, text
    raise DecodeError("no key of this enclave opens it")


def group_in(text: bytes, known: Callable[[bytes], GroupRecord]) -> GroupRecord:
    """Return the group that the private transaction in a payload names.

    `known` looks up a group by its id. Raises `DecodeError` for other payloads; so does `known` for an unknown group.
    """
    try:
        items = rlp.decode_list(b64decode(text, validate=True), _MAX_ITEMS)
    except (ValueError, DecodeError):
        raise DecodeError("it holds no private transaction") from None
    if len(items) != _PRIVATE_FIELDS:
        raise DecodeError("it holds no private transaction of Besu")
    sender, recipients = items[_PRIVATE_FROM], items[_PRIVATE_FOR]
    if isinstance(recipients, bytes):
        return known(recipients)
    return legacy_group(tuple(key for key in (sender, *recipients) if isinstance(key, bytes)))


def payload_for(record: bytes, recipient: bytes) -> TesseraPayload | None:
    """Return a record as the payload of one recipient, with its box alone. None if the record has no box for it."""
    box = boxes_of(record).get(recipient, ABSENT_BOX)
    if box == ABSENT_BOX:
        return None
    sender, box_nonce, nonce = record[1:33], record[33:57], record[57:81]
    ciphertext = record[_boxes_end(record) :]
    return TesseraPayload(sender, ciphertext, nonce, box_nonce, (box,), (recipient,))


def boxes_of(record: bytes) -> dict[bytes, bytes]:
    """Return the boxes of a valid record by their owners."""
    starts = range(_HEAD_BYTES + 2 * _COUNT_BYTES, _boxes_end(record), _ENTRY_BYTES)
    return {record[at : at + KEY_BYTES]: record[at + KEY_BYTES : at + _ENTRY_BYTES] for at in starts}


def has_absent_boxes(record: bytes) -> bool:
    """Whether a valid record lacks the box of a recipient, because it came from Tessera or Orion."""
    return ABSENT_BOX in record[_HEAD_BYTES : _boxes_end(record)]


def with_box(record: bytes, recipients: Sequence[bytes]) -> Sequence[bytes]:
    """Return the recipients of a valid record whose boxes it has."""
    if not has_absent_boxes(record):
        return recipients
    boxes = boxes_of(record)
    return [one for one in recipients if boxes.get(one, ABSENT_BOX) != ABSENT_BOX]


def is_same_payload(one: bytes, other: bytes) -> bool:
    """Whether two records of one key differ in their boxes alone, and one of them lacks boxes."""
    return one[:_HEAD_BYTES] == other[:_HEAD_BYTES] and (has_absent_boxes(one) or has_absent_boxes(other))


def _boxes_end(record: bytes) -> int:
    count = int.from_bytes(record[_HEAD_BYTES : _HEAD_BYTES + _COUNT_BYTES], "big")
    return _HEAD_BYTES + 2 * _COUNT_BYTES + _ENTRY_BYTES * count
