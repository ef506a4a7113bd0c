"""Writes sealed payloads as Tessera and Orion store them, for tests of the migration.

The layouts follow the public sources of Tessera 21.7 and Orion 21.1. This module writes the data; tests do not run
Tessera or Orion.
"""

from __future__ import annotations

import sqlite3
from base64 import b64encode
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from ophion.enclave.group_record import GroupRecord
from ophion.enclave.tessera.payloads import TesseraPayload

_HEAD_BYTES = 117
_BOX_BYTES = 80


def split_record(record: bytes) -> tuple[dict[str, bytes], dict[bytes, bytes], bytes]:
    """Split a sealed record into its fields, the boxes by recipient, and the ciphertext."""
    fields = {"sender": record[1:33], "box_nonce": record[33:57], "nonce": record[57:81]}
    end = _HEAD_BYTES + _BOX_BYTES * int.from_bytes(record[113:115], "big")
    boxes = [record[start : start + _BOX_BYTES] for start in range(_HEAD_BYTES, end, _BOX_BYTES)]
    return fields, {box[:32]: box[32:] for box in boxes}, record[end:]


def _field(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def _fields(items: Sequence[bytes]) -> bytes:
    return len(items).to_bytes(8, "big") + b"".join(map(_field, items))


def tessera_payload(record: bytes, recipients: Iterable[bytes]) -> bytes:
    """Encode a payload in the format of Tessera. A recipient stores its own box only."""
    fields, boxes, ciphertext = split_record(record)
    kept = list(recipients)
    return (
        _field(fields["sender"])
        + _field(ciphertext)
        + _field(fields["nonce"])
        + _fields([boxes[key] for key in kept])
        + _field(fields["box_nonce"])
        + _fields(kept)
        + _field(b"\x00")
        + bytes(8)
        + _field(record[81:113])
    )


def cbor_payload(payload: TesseraPayload) -> bytes:
    """Encode a payload as the CBOR map of newer versions of Tessera, which has a known number of members."""
    content = {
        "sender": payload.sender,
        "cipherText": payload.ciphertext,
        "nonce": payload.nonce,
        "recipientNonce": payload.box_nonce,
        "recipientBoxes": list(payload.boxes),
        "recipients": list(payload.recipients),
    }
    return bytes([0xA0 + len(content)]) + cbor(content)[1:-1]


def tessera_group(group: GroupRecord) -> bytes:
    """Encode a group in the format of Tessera."""
    state = b"ACTIVE" if group.active else b"DELETED"
    texts = _field(group.name.encode()) + _field(group.description.encode())
    return texts + _fields(group.members) + _field(group.seed) + _field(group.type.value.encode()) + _field(state)


def orion_payload(record: bytes, recipients: Iterable[bytes]) -> bytes:
    """Encode a payload in the format of Orion, which does not store the owners of the boxes."""
    fields, boxes, ciphertext = split_record(record)
    content = {
        "sender": fields["sender"],
        "nonce": fields["box_nonce"],
        "encryptedKeys": [{"encoded": boxes[key]} for key in recipients],
        "cipherText": ciphertext,
        "privacyGroupId": record[81:113],
    }
    return cbor(content)


def orion_group(group: GroupRecord) -> bytes:
    """Encode a group in the format of Orion."""
    content = {
        "addresses": [b64encode(key).decode() for key in group.members],
        "name": group.name,
        "description": group.description,
        "state": "ACTIVE",
        "type": group.type.value,
        "randomSeed": group.seed,
    }
    return cbor(content)


def cbor(value: Any) -> bytes:
    """Encode a value as CBOR. Maps have an indefinite length, as Jackson writes them."""
    if isinstance(value, dict):
        return b"\xbf" + b"".join(cbor(key) + cbor(item) for key, item in value.items()) + b"\xff"
    if isinstance(value, list):
        return _cbor_head(4, len(value)) + b"".join(map(cbor, value))
    if isinstance(value, str):
        return _cbor_head(3, len(value.encode())) + value.encode()
    return _cbor_head(2, len(value)) + bytes(value)


def _cbor_head(kind: int, size: int) -> bytes:
    if size < 24:
        return bytes([kind << 5 | size])
    width = 0 if size < 1 << 8 else 1 if size < 1 << 16 else 2
    return bytes([kind << 5 | 24 + width]) + size.to_bytes(1 << width, "big")


def write_tessera_database(
    path: Path, payloads: Iterable[tuple[bytes, bytes]], groups: Iterable[GroupRecord] = ()
) -> None:
    """Write a SQLite database with the tables of Tessera."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE ENCRYPTED_TRANSACTION (ENCODED_PAYLOAD BLOB, TIMESTAMP BIGINT, HASH BLOB)")
        database.execute("CREATE TABLE PRIVACY_GROUP (ID BLOB, LOOKUP_ID BLOB, DATA BLOB, TIMESTAMP BIGINT)")
        rows = [(data, 0, key) for key, data in payloads]
        database.executemany("INSERT INTO ENCRYPTED_TRANSACTION VALUES (?, ?, ?)", rows)
        found = [(group.id, b"", tessera_group(group), 0) for group in groups]
        database.executemany("INSERT INTO PRIVACY_GROUP VALUES (?, ?, ?, ?)", found)
        database.commit()
