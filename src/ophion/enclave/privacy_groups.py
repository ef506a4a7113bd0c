"""`GroupRegistry`: the groups that this enclave knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from ophion.enclave.group_ids import lookup_id
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import GroupType
from ophion.enclave.store_writer import GROUPS, LOOKUP, Change
from ophion.native.enclave import is_sound_enclave_key
from ophion.native.store import Store

MAX_GROUPS_OF_ONE: Final = 10_000
"""Maximum number of groups in this enclave that one other enclave key has created."""
NOT_ACCEPTED: Final = "groups of its maker are not accepted here"
_KEPT: Final = 4096
_KEYS_KEPT: Final = 65_536
_PAGE: Final = 1000
_MAX_FOUND: Final = 1000
"""Maximum number of groups that a search by members returns."""


class GroupRegistry:
    """The known groups, by id and by their exact members. New groups can be looked up before they are on disk."""

    def __init__(self, store: Store, own: Sequence[bytes], accepted_makers: frozenset[bytes] | None = None) -> None:
        """Create the registry. `accepted_makers` are the enclave keys whose groups are accepted, or None to accept all
        groups.
        """
        self._store = store
        self._accepted_makers = accepted_makers
        self._own = frozenset(own)
        self._kept: dict[bytes, GroupRecord] = {}
        self._unwritten: dict[bytes, GroupRecord] = {}
        self._group_counts: Counter[bytes] = Counter()
        self._valid_keys: set[bytes] = set(own)
        self.count = 0
        self._load()

    def get(self, group_id: bytes) -> GroupRecord | None:
        """Return a group, active or deleted, or None if the id is unknown."""
        found = self._unwritten.get(group_id) or self._kept.get(group_id)
        if found is None:
            row = self._store.row(GROUPS, group_id)
            if row is not None:
                found = GroupRecord.decode(row)
                self._keep(group_id, found)
        return found

    def find(self, members: Sequence[bytes]) -> list[GroupRecord]:
        """Return the active groups with exactly these members."""
        prefix = lookup_id(members)
        ids = dict.fromkeys(key[len(prefix) :] for key, _ in self._store.rows(LOOKUP, prefix, b"", _MAX_FOUND))
        ids.update((one.id, None) for one in self._unwritten.values() if lookup_id(one.members) == prefix)
        found = (self.get(group_id) for group_id in ids)
        return [one for one in found if one is not None and one.active]

    def all(self, limit: int) -> list[GroupRecord]:
        """Return at most `limit` groups that are on disk."""
        return [GroupRecord.decode(row) for _, row in self._store.rows(GROUPS, b"", b"", limit)]

    def problem(self, record: GroupRecord) -> str | None:
        """Return the reason why a group is refused, or None if it is accepted."""
        if record.type is GroupType.FLEXIBLE:
            return "groups of this type are not known here"
        if not self._own.intersection(record.members):
            return "this enclave is no member"
        if record.maker not in self._own and self._group_counts[record.maker] >= MAX_GROUPS_OF_ONE:
            return "its maker has made too many groups"
        if not self.accepts_maker(record.maker):
            return NOT_ACCEPTED
        if not all(self._is_valid_key(member) for member in record.members):
            return "a member's key is not sound"
        return None

    def accepts_maker(self, maker: bytes) -> bool:
        """Whether this enclave accepts new groups that the owner of this key has made."""
        return self._accepted_makers is None or maker in self._own or maker in self._accepted_makers

    def unvalidated(self, members: Iterable[bytes]) -> list[bytes]:
        """Return the member keys that are not validated yet. Validating a key takes a tenth of a millisecond."""
        return [member for member in members if member not in self._valid_keys]

    def note_valid(self, keys: Iterable[bytes]) -> None:
        """Record that these member keys are valid, so that they are not validated again."""
        if len(self._valid_keys) >= _KEYS_KEPT:
            self._valid_keys.clear()
        self._valid_keys.update(keys)

    def _is_valid_key(self, key: bytes) -> bool:
        return key in self._valid_keys or is_sound_enclave_key(key)

    def put(self, record: GroupRecord) -> list[Change]:
        """Add or change a group. Returns the database rows to write; after the write the caller must call `written`."""
        group_id = record.id
        changes: list[Change] = [(GROUPS, group_id, record.encode())]
        if self.get(group_id) is None:
            self.count += 1
            self._group_counts[record.maker] += 1
            changes.append((LOOKUP, lookup_id(record.members) + group_id, b""))
        self._unwritten[group_id] = record
        return changes

    def forget(self, record: GroupRecord) -> None:
        """Remove a group from memory while its database rows are being deleted."""
        group_id = record.id
        self.count -= 1
        self._group_counts[record.maker] -= 1
        self._kept.pop(group_id, None)
        self._unwritten.pop(group_id, None)

    def written(self, record: GroupRecord) -> None:
        """Drop a group from memory after its write has succeeded or failed, so that `get` reads the group from disk."""
        if self._unwritten.get(record.id) is record:
            del self._unwritten[record.id]
            self._kept.pop(record.id, None)

    def _keep(self, group_id: bytes, record: GroupRecord) -> None:
        if len(self._kept) >= _KEPT:
            self._kept.clear()
        self._kept[group_id] = record

    def _load(self) -> None:
        after = b""
        while rows := self._store.rows(GROUPS, b"", after, _PAGE):
            for _, row in rows:
                self._group_counts[GroupRecord.decode(row).maker] += 1
            self.count += len(rows)
            after = rows[-1][0]
