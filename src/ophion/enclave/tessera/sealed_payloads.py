"""Payloads of Tessera as sealed records of Ophion (native/enclave/src/sealed_payload.rs), and back.

Tessera sends a recipient only its own box (the payload's symmetric key, encrypted for this recipient). A sealed record
names all members of the group. In a record from Tessera, the boxes of the other members are absent: 48 zero bytes,
which no key decrypts.
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
"""Maximum number of RLP items in a private transaction. Its recipients are at most the members of a group."""
_PRIVATE_FROM, _PRIVATE_FOR, _PRIVATE_FIELDS = 9, 10, 12


def encode_record(
    payload: TesseraPayload, group: bytes, boxes: Mapping[bytes, bytes], members: int | None = None
) -> bytes:
    """Encode a sealed record. `boxes` maps recipients to boxes. The first `members` recipients (by default all) are the
    members of the group.
    """
    count = len(boxes).to_bytes(_COUNT_BYTES, "big")
    member_count = count if members is None else members.to_bytes(_COUNT_BYTES, "big")
    head = bytes([_VERSION]) + payload.sender + payload.box_nonce + payload.nonce + group + count + member_count
    record = head + b"".join(recipient + box for recipient, box in boxes.items()) + payload.ciphertext
    with translated():
        read_sealed(record)
    return record


def record_for_member(payload: TesseraPayload, group: GroupRecord, own: bytes, box: bytes) -> bytes:
    """Return the sealed record of a payload that the local key `own` decrypts with `box`. `own` need not be a member of
    the group, because a sender may also send copies to other enclaves.
    """
    boxes = dict(zip(payload.recipients, payload.boxes, strict=False)) | {own: box}
    entries = {member: boxes.get(member, ABSENT_BOX) for member in group.members}
    return encode_record(payload, group.id, entries | {own: box}, len(entries))


def opened(keyring: EnclaveKeyring, payload: TesseraPayload) -> tuple[bytes, bytes, bytes]:
    """Decrypt a payload. Returns the local key that decrypts it, the box of this key, and the plain text. Raises
    `DecodeError` if no local key decrypts the payload.

    If the payload names its recipients, only the boxes of local keys are tried. Orion does not name the recipients, so
    every local key is tried with every box.
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

    `known` looks up a group by its id, and raises `DecodeError` if the id is unknown. A payload that is not a private
    transaction of Besu also raises `DecodeError`.
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
    """Convert a sealed record to the Tessera payload for one recipient, which contains only the recipient's box.
    Returns None if the record has no box for this recipient.
    """
    box = boxes_of(record).get(recipient, ABSENT_BOX)
    if box == ABSENT_BOX:
        return None
    sender, box_nonce, nonce = record[1:33], record[33:57], record[57:81]
    ciphertext = record[_boxes_end(record) :]
    return TesseraPayload(sender, ciphertext, nonce, box_nonce, (box,), (recipient,))


def boxes_of(record: bytes) -> dict[bytes, bytes]:
    """Return the boxes in a valid sealed record, by recipient."""
    starts = range(_HEAD_BYTES + 2 * _COUNT_BYTES, _boxes_end(record), _ENTRY_BYTES)
    return {record[at : at + KEY_BYTES]: record[at + KEY_BYTES : at + _ENTRY_BYTES] for at in starts}


def has_absent_boxes(record: bytes) -> bool:
    """Whether a valid sealed record lacks the box of a recipient. Records from Tessera or Orion lack boxes."""
    return ABSENT_BOX in record[_HEAD_BYTES : _boxes_end(record)]


def with_box(record: bytes, recipients: Sequence[bytes]) -> Sequence[bytes]:
    """Return those of `recipients` whose boxes are in a valid sealed record."""
    if not has_absent_boxes(record):
        return recipients
    boxes = boxes_of(record)
    return [one for one in recipients if boxes.get(one, ABSENT_BOX) != ABSENT_BOX]


def is_same_payload(one: bytes, other: bytes) -> bool:
    """Whether two sealed records with the same payload key differ only in their boxes, and one of them lacks boxes."""
    return one[:_HEAD_BYTES] == other[:_HEAD_BYTES] and (has_absent_boxes(one) or has_absent_boxes(other))


def _boxes_end(record: bytes) -> int:
    count = int.from_bytes(record[_HEAD_BYTES : _HEAD_BYTES + _COUNT_BYTES], "big")
    return _HEAD_BYTES + 2 * _COUNT_BYTES + _ENTRY_BYTES * count
