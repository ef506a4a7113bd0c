"""Encodes and decodes privacy groups in the formats of Tessera."""

from __future__ import annotations

from ophion.enclave.group_record import LEGACY_DESCRIPTION, LEGACY_NAME, GroupRecord
from ophion.enclave.interface import MAX_MEMBERS, GroupType
from ophion.enclave.tessera.fields import FieldReader, encode_field, encode_fields
from ophion.errors import DecodeError

_ACTIVE, _DELETED = "ACTIVE", "DELETED"


def encode_group(group: GroupRecord) -> bytes:
    """Encode a group in Tessera's binary encoding."""
    texts = encode_field(group.name.encode()) + encode_field(group.description.encode())
    state = _ACTIVE if group.active else _DELETED
    kind = encode_field(group.type.value.encode()) + encode_field(state.encode())
    return texts + encode_fields(group.members) + encode_field(group.seed) + kind


def decode_group(data: bytes) -> GroupRecord:
    """Decode a group. Raises `DecodeError` for invalid bytes and for groups of GoQuorum."""
    fields = FieldReader(data)
    name, description, members, seed = fields.text(), fields.text(), fields.fields(), fields.field()
    return group_of(name, description, members, seed, fields.text(), fields.text())


def group_of(
    name: str, description: str, members: tuple[bytes, ...], seed: bytes, kind: str, state: str
) -> GroupRecord:
    """Return the group with these fields, which come from a Tessera or Orion enclave. Raises `DecodeError` for an
    invalid field.
    """
    if kind == GroupType.LEGACY.value:
        return legacy_group(members)
    if kind != GroupType.PANTHEON.value:
        raise DecodeError(f"groups of type {kind} are not supported")
    if not 0 < len(members) <= MAX_MEMBERS:
        raise DecodeError(f"a group of {len(members)} members")
    found = GroupRecord(GroupType.PANTHEON, name, description, members, seed, members[0], state == _ACTIVE)
    return GroupRecord.decode(found.encode())  # decode the encoded record, because `decode` checks every field


def legacy_group(members: tuple[bytes, ...]) -> GroupRecord:
    """Return the legacy group of `privateFrom` and `privateFor`. Raises `DecodeError` for invalid keys."""
    unique = tuple(dict.fromkeys(members))
    if not 0 < len(unique) <= MAX_MEMBERS:
        raise DecodeError(f"a group of {len(unique)} members")
    return GroupRecord.decode(
        GroupRecord(GroupType.LEGACY, LEGACY_NAME, LEGACY_DESCRIPTION, unique, b"", unique[0]).encode()
    )
