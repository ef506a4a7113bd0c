"""`GroupRecord`: a group as enclaves store and exchange it."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ophion.enclave.group_ids import SEED_SIZE, created_id, legacy_id
from ophion.enclave.interface import KEY_SIZE, MAX_MEMBERS, Group, GroupType
from ophion.errors import DecodeError
from ophion.primitives import rlp

MAX_NAME_BYTES: Final = 1024
"""Maximum size in bytes of the name or the description of a group."""
LEGACY_NAME: Final = "legacy"
LEGACY_DESCRIPTION: Final = "Privacy groups to support the creation of groups by privateFor and privateFrom"
_FIELDS: Final = 7
_TYPES: Final = (GroupType.LEGACY, GroupType.PANTHEON, GroupType.FLEXIBLE)


class GroupRecord(Struct, frozen=True):
    """A group with the fields from which its id is computed, and its creator."""

    type: GroupType
    name: str
    description: str
    members: tuple[bytes, ...]
    seed: bytes
    """Random seed of the group id; empty for a legacy group."""
    maker: bytes
    """Enclave key of the creator. The group counts against the creator's limit."""
    active: bool = True

    @property
    def id(self) -> bytes:
        """The group id. It is computed from members and seed, so a sender cannot choose it freely."""
        return created_id(self.members, self.seed) if self.seed else legacy_id(self.members)

    def group(self) -> Group:
        """The group as a `Group`, the type that other packages use."""
        return Group(self.id, self.name, self.description, self.type, self.members, self.active)

    def deleted(self) -> GroupRecord:
        """A copy of this group that is recorded as deleted."""
        return replace(self, active=False)

    def encode(self) -> bytes:
        """Encode the record as RLP."""
        name, description = self.name.encode(), self.description.encode()
        kind = _TYPES.index(self.type)
        return rlp.encode([kind, name, description, self.members, self.seed, self.maker, int(self.active)])

    @classmethod
    def decode(cls, encoded: bytes) -> GroupRecord:
        """Decode a record from RLP. Raises `DecodeError` for an invalid field."""
        items = rlp.decode_list(encoded, max_items=16 + 2 * MAX_MEMBERS)
        if len(items) != _FIELDS:
            raise DecodeError(f"{len(items)} fields instead of {_FIELDS}", "group")
        kind, name, description, members, seed, maker, active = items
        number, state = rlp.decode_int(kind), rlp.decode_int(active)
        if number >= len(_TYPES) or state > 1 or not isinstance(members, list):
            raise DecodeError("unknown type or state", "group")
        group_type = _TYPES[number]
        seed_size = 0 if group_type is GroupType.LEGACY else SEED_SIZE
        keys = tuple(_key(member) for member in members)
        if not 0 < len(keys) <= MAX_MEMBERS or len(set(keys)) != len(keys):
            raise DecodeError(f"{len(keys)} members, or one of them twice", "group")
        if not isinstance(seed, bytes) or len(seed) != seed_size:
            raise DecodeError(f"a seed of {seed_size} bytes is expected", "group")
        return cls(group_type, _text(name), _text(description), keys, seed, _key(maker), bool(state))

    @classmethod
    def legacy(cls, members: tuple[bytes, ...], maker: bytes) -> GroupRecord:
        """Return the record of a legacy group. The first payload of the group creates this record."""
        return cls(GroupType.LEGACY, LEGACY_NAME, LEGACY_DESCRIPTION, members, b"", maker)


def _key(item: rlp.Item) -> bytes:
    if not isinstance(item, bytes) or len(item) != KEY_SIZE:
        raise DecodeError(f"a key of {KEY_SIZE} bytes is expected", "group")
    return item


def _text(item: rlp.Item) -> str:
    if not isinstance(item, bytes) or len(item) > MAX_NAME_BYTES:
        raise DecodeError(f"a text of at most {MAX_NAME_BYTES} bytes is expected", "group")
    try:
        return item.decode()
    except UnicodeDecodeError:
        raise DecodeError("a text that is not UTF-8", "group") from None
