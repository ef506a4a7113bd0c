"""Messages of etcd's gRPC service `etcdserverpb.KV`, as far as the vote store needs them (protocol buffers).

etcd's `rpc.proto` and `kv.proto` define the field numbers. The decoder skips unknown fields and reads at most
`_MAX_FIELDS` fields of a message, so a long reply takes no longer than a short one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from ophion.errors import DecodeError

TRANSACTION: Final = "/etcdserverpb.KV/Txn"
RANGE: Final = "/etcdserverpb.KV/Range"

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
"""Wire types."""
_FIXED_BYTES: Final = {_FIXED64: 8, _FIXED32: 4}
_MAX_VARINT_BYTES: Final = 10
_MAX_INT64: Final = 2**63 - 1
_MAX_FIELDS: Final = 32
_PLACE: Final = "reply of etcd"
_COMPARE_MOD_REVISION: Final = b"\x10\x02"
_COMPARE_VALUE: Final = b"\x10\x03"
"""Field `target` of a comparison. Its field `result` is 0 for EQUAL, which protocol buffers omit."""


Fields: TypeAlias = "list[tuple[int, int | bytes]]"
"""Numbers and values of the fields of a message."""


class Entry(Struct, frozen=True):
    """A key of etcd: its value, and the revision of its last change."""

    value: bytes
    mod_revision: int


class TransactionReply(Struct, frozen=True):
    """The reply to a transaction."""

    revision: int
    """Revision of the cluster after the transaction."""
    succeeded: bool
    """Whether the comparison was true."""
    entry: Entry | None
    """The key that the failed transaction has read. None if the key does not exist."""


def encode_transaction(key: bytes, known: Entry | None, puts: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Encode a transaction: if the key has this value and was last changed at this revision (None: the key does not
    exist), put all pairs of key and value, otherwise read the key.
    """
    revision = 0 if known is None else known.mod_revision
    compares = [_COMPARE_MOD_REVISION + _bytes(3, key) + b"\x30" + _varint(revision)]
    if known is not None:
        compares.append(_COMPARE_VALUE + _bytes(3, key) + _bytes(7, known.value))
    changes = (_bytes(2, _bytes(2, _bytes(1, name) + _bytes(2, value))) for name, value in puts)
    read = _bytes(3, _bytes(1, encode_range(key)))
    return b"".join((*(_bytes(1, compare) for compare in compares), *changes, read))


def encode_range(key: bytes) -> bytes:
    """Encode a request for the value of one key."""
    return _bytes(1, key)


def decode_transaction_reply(data: bytes) -> TransactionReply:
    """Decode the reply to a transaction. Raises `DecodeError`."""
    fields = _fields(data)
    revision, succeeded = _revision(fields), False
    ranges = []
    for number, value in fields:
        if number == 2:
            succeeded = _as_number(value) != 0
        elif number == 3:
            # an element of `responses` is one of several kinds of replies; number 1 is a range
            ranges += [_as_bytes(reply) for kind, reply in _fields(_as_bytes(value)) if kind == 1]
    if succeeded:
        return TransactionReply(revision, succeeded, None)
    if len(ranges) != 1:
        raise DecodeError("the transaction has not read the key", _PLACE)
    return TransactionReply(revision, succeeded, _entry(ranges[0]))


def decode_range_reply(data: bytes) -> Entry | None:
    """Decode the reply to a request for one key. Returns None if the key does not exist. Raises `DecodeError`."""
    _revision(_fields(data))
    return _entry(data)


def _revision(fields: Fields) -> int:
    """Return the revision in the header of a reply."""
    header = next((_as_bytes(value) for number, value in fields if number == 1), b"")
    return _positive(next((value for number, value in _fields(header) if number == 3), 0), "revision")


def _entry(data: bytes) -> Entry | None:
    """Return the first key of a range."""
    found = next((_as_bytes(value) for number, value in _fields(data) if number == 2), None)
    if found is None:
        return None
    fields = dict(_fields(found))
    return Entry(_as_bytes(fields.get(5, b"")), _positive(fields.get(3, 0), "mod_revision"))


def _positive(value: int | bytes, name: str) -> int:
    """Return a revision. No reply of etcd has revision 0."""
    number = _as_number(value)
    if number == 0:
        raise DecodeError(f"{name} is missing", _PLACE)
    return number


def _bytes(number: int, value: bytes) -> bytes:
    return bytes((number << 3 | _BYTES,)) + _varint(len(value)) + value


def _varint(number: int) -> bytes:
    if number < 128:
        return bytes((number,))
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _fields(data: bytes) -> Fields:
    """Return numbers and values of all fields: integers, or bytes. Fields of fixed length are left out."""
    found: Fields = []
    at = 0
    for _ in range(_MAX_FIELDS):
        if at == len(data):
            return found
        tag, at = _read_varint(data, at)
        kind, number = tag & 7, tag >> 3
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            found.append((number, value))
            continue
        if kind == _BYTES:
            length, at = _read_varint(data, at)
        elif kind in _FIXED_BYTES:
            length = _FIXED_BYTES[kind]
        else:
            raise DecodeError(f"wire type {kind}", _PLACE)
        if at + length > len(data):
            raise DecodeError("a field is incomplete", _PLACE)
        if kind == _BYTES:
            found.append((number, data[at : at + length]))
        at += length
    if at < len(data):
        raise DecodeError("too many fields", _PLACE)
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(data[at : at + _MAX_VARINT_BYTES]):
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, at + index + 1
    raise DecodeError("a number is incomplete or too long", _PLACE)


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise DecodeError("a number instead of bytes", _PLACE)
    return value


def _as_number(value: int | bytes) -> int:
    if not isinstance(value, int) or value > _MAX_INT64:
        raise DecodeError("not a number, or out of range", _PLACE)
    return value
