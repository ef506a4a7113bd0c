"""Messages of priv/1. Decoding is strict and raises `DecodeError`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from ophion.enclave.interface import KEY_SIZE, MAX_KEYS
from ophion.enclave.payload_exchange import EnclaveRecord, RecordKind, RecordLabel, RecordListing
from ophion.enclave.payload_intake import MAX_RECORD_BYTES
from ophion.errors import DecodeError
from ophion.native.enclave import read_sealed
from ophion.native.exceptions import NativeError
from ophion.primitives import rlp

MAX_LABELS: Final = 1024
"""Limit of record labels per message."""
MAX_RECORDS: Final = 1024
MAX_REASON_BYTES: Final = 200
NONCE_SIZE: Final = 24
SECRET_SIZE: Final = 32
MAX_PUSH_BYTES: Final = MAX_RECORD_BYTES + 1024 * 1024
"""Size limit of a message that pushes records: one record of the maximum size, or many smaller records."""
_MAX_BOX_BYTES: Final = 512
_MAX_ITEMS: Final = 4 * MAX_RECORDS
"""Limit of RLP items in a message, at all levels."""


class Code(IntEnum):
    """Message codes of priv/1."""

    ANNOUNCE = 0
    CHALLENGE = 1
    PROOF = 2
    PUSH_PAYLOAD = 3
    ACK = 4
    PUSH_GROUP = 5
    GET_PAYLOAD = 6
    PAYLOAD = 7
    LIST = 8
    LISTED = 9


MAX_BYTES: Final = {
    Code.ANNOUNCE: 1024,
    Code.CHALLENGE: MAX_KEYS * (_MAX_BOX_BYTES + 128),
    Code.PROOF: 2048,
    Code.PUSH_PAYLOAD: MAX_PUSH_BYTES,
    Code.ACK: MAX_RECORDS * (MAX_REASON_BYTES + 48),
    Code.PUSH_GROUP: MAX_PUSH_BYTES,
    Code.GET_PAYLOAD: MAX_LABELS * 36 + 64,
    Code.PAYLOAD: MAX_PUSH_BYTES,
    Code.LIST: 128,
    Code.LISTED: MAX_LABELS * 36 + 64,
}
"""Size limit of each message in bytes, by message code."""


class Challenge(NamedTuple):
    """A random text, encrypted for a claimed key."""

    key: bytes
    ephemeral: bytes
    nonce: bytes
    boxed: bytes


class Ack(NamedTuple):
    """Result of a pushed payload or group. An empty reason means that the peer has stored it durably."""

    label: RecordLabel
    reason: str


class ListRequest(NamedTuple):
    """Request for the record labels of an enclave key after a sequence number."""

    request_id: int
    key: bytes
    after: int


def encode_keys(keys: Sequence[bytes]) -> bytes:
    """Encode an `Announce` message from enclave keys."""
    return rlp.encode(list(keys))


def read_keys(payload: bytes) -> list[bytes]:
    """Decode an `Announce` message into enclave keys. Duplicate keys are an error."""
    keys = [_exact(item, KEY_SIZE) for item in _list(_decoded(payload), MAX_KEYS)]
    if len(set(keys)) != len(keys):
        raise DecodeError("duplicate key", "priv")
    return keys


def encode_challenges(challenges: Sequence[Challenge]) -> bytes:
    """Encode a `Challenge` message."""
    return rlp.encode([list(one) for one in challenges])


def read_challenges(payload: bytes) -> list[Challenge]:
    """Decode a `Challenge` message."""
    return [
        Challenge(
            _exact(key, KEY_SIZE), _exact(ephemeral, KEY_SIZE), _exact(nonce, NONCE_SIZE), _at_most(box, _MAX_BOX_BYTES)
        )
        for key, ephemeral, nonce, box in (_tuple(item, 4) for item in _list(_decoded(payload), MAX_KEYS))
    ]


def encode_proofs(proofs: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Encode a `Proof` message: pairs of key and secret text."""
    return rlp.encode([list(one) for one in proofs])


def read_proofs(payload: bytes) -> list[tuple[bytes, bytes]]:
    """Decode a `Proof` message into pairs of key and secret text."""
    items = (_tuple(item, 2) for item in _list(_decoded(payload), MAX_KEYS))
    return [(_exact(key, KEY_SIZE), _exact(secret, SECRET_SIZE)) for key, secret in items]


def encode_bodies(entries: Sequence[EnclaveRecord]) -> bytes:
    """Encode a `PushPayload` or `PushGroup` message from encoded records."""
    return rlp.encode([one.body for one in entries])


def read_payloads(payload: bytes) -> list[EnclaveRecord]:
    """Decode a `PushPayload` message. The label of each payload is computed from its ciphertext."""
    return [EnclaveRecord(RecordLabel(RecordKind.PAYLOAD, _key_of(body)), body) for body in _bodies(payload)]


def read_groups(payload: bytes) -> list[bytes]:
    """Decode a `PushGroup` message into group records."""
    return _bodies(payload)


def encode_acks(acks: Sequence[Ack]) -> bytes:
    """Encode an `Ack` message."""
    return rlp.encode([[label.encode(), reason.encode()[:MAX_REASON_BYTES]] for label, reason in acks])


def read_acks(payload: bytes) -> list[Ack]:
    """Decode an `Ack` message."""
    items = (_tuple(item, 2) for item in _list(_decoded(payload), MAX_RECORDS))
    return [Ack(_label(label), _text(reason)) for label, reason in items]


def encode_request(request_id: int, labels: Sequence[RecordLabel]) -> bytes:
    """Encode a `GetPayload` request."""
    return rlp.encode([request_id, [label.encode() for label in labels]])


def read_request(payload: bytes) -> tuple[int, list[RecordLabel]]:
    """Decode a `GetPayload` request."""
    request_id, labels = _tuple(_decoded(payload), 2)
    return _number(request_id), [_label(item) for item in _list(labels, MAX_LABELS)]


def encode_records(request_id: int, entries: Sequence[EnclaveRecord]) -> bytes:
    """Encode a `Payload` response."""
    return rlp.encode([request_id, [[one.label.encode(), one.body] for one in entries]])


def read_records(payload: bytes) -> tuple[int, list[EnclaveRecord]]:
    """Decode a `Payload` response."""
    request_id, entries = _tuple(_decoded(payload), 2)
    items = (_tuple(item, 2) for item in _list(entries, MAX_RECORDS))
    return _number(request_id), [EnclaveRecord(_label(label), _any_bytes(body)) for label, body in items]


def encode_list(request: ListRequest) -> bytes:
    """Encode a `List` request."""
    return rlp.encode(list(request))


def read_list(payload: bytes) -> ListRequest:
    """Decode a `List` request."""
    request_id, key, after = _tuple(_decoded(payload), 3)
    return ListRequest(_number(request_id), _exact(key, KEY_SIZE), _number(after))


def encode_listing(request_id: int, listing: RecordListing) -> bytes:
    """Encode a `Listed` response."""
    return rlp.encode([request_id, [label.encode() for label in listing.labels], listing.last, int(listing.has_more)])


def read_listing(payload: bytes) -> tuple[int, RecordListing]:
    """Decode a `Listed` response into the request id and the listing."""
    request_id, labels, last, more = _tuple(_decoded(payload), 4)
    found = [_label(item) for item in _list(labels, MAX_LABELS)]
    return _number(request_id), RecordListing(found, _number(last), _number(more) != 0)


def response_id(payload: bytes) -> int:
    """Return the request id of a response without decoding its other items."""
    items = rlp.split_list(payload, 4)
    if len(items) not in (2, 4):
        raise DecodeError("a response is expected", "priv")
    return _number(rlp.decode(items[0], max_items=0))


# --- decoding of fields -------------------------------------------------------------------------


def _decoded(payload: bytes) -> rlp.Item:
    return rlp.decode(payload, _MAX_ITEMS)


def _bodies(payload: bytes) -> list[bytes]:
    return [_any_bytes(item) for item in _list(_decoded(payload), MAX_RECORDS)]


def _key_of(record: bytes) -> bytes:
    try:
        return read_sealed(record).key
    except NativeError as error:
        raise DecodeError(str(error), "priv") from None


def _list(item: rlp.Item, limit: int) -> list[rlp.Item]:
    if not isinstance(item, list) or len(item) > limit:
        raise DecodeError(f"a list of at most {limit} items is expected", "priv")
    return item


def _tuple(item: rlp.Item, size: int) -> list[rlp.Item]:
    if not isinstance(item, list) or len(item) != size:
        raise DecodeError(f"a list of {size} items is expected", "priv")
    return item


def _any_bytes(item: rlp.Item) -> bytes:
    if not isinstance(item, bytes):
        raise DecodeError("a byte string is expected", "priv")
    return item


def _exact(item: rlp.Item, size: int) -> bytes:
    if not isinstance(item, bytes) or len(item) != size:
        raise DecodeError(f"{size} bytes are expected", "priv")
    return item


def _at_most(item: rlp.Item, limit: int) -> bytes:
    if not isinstance(item, bytes) or len(item) > limit:
        raise DecodeError(f"at most {limit} bytes are expected", "priv")
    return item


def _label(item: rlp.Item) -> RecordLabel:
    return RecordLabel.decode(_exact(item, 1 + KEY_SIZE))


def _number(item: rlp.Item) -> int:
    return rlp.decode_int(_at_most(item, 8))


def _text(item: rlp.Item) -> str:
    return _at_most(item, MAX_REASON_BYTES).decode("ascii", errors="replace")
