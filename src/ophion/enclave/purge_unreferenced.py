"""Deletes payloads and groups of other enclaves, if no marker transaction refers to them, in the database of a stopped
node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ophion.enclave.group_ids import lookup_id
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.payload_quota import ExpiredRecord, all_rows, unmarked_rows
from ophion.enclave.store_writer import ARRIVALS, GROUPS, LOOKUP, PAYLOADS, UNMARKED, Change, numbered
from ophion.native.enclave import read_sealed
from ophion.native.privacy import PrivateLedger
from ophion.native.store import Store

_WRITTEN_AT_ONCE: Final = 10_000


def purge_unmarked(store: Store, own: frozenset[bytes]) -> tuple[int, int]:
    """Delete payloads and groups without a marker transaction. Returns the numbers of deleted payloads and groups.
    Groups that the enclave keys `own` created are kept.
    """
    ledger = PrivateLedger(store)
    changes: list[Change] = []
    counts = [0, 0]
    tracked: set[bytes] = set()
    for one in unmarked_rows(store):
        if one.is_group:
            tracked.add(one.id)
        has_marker = ledger.blocks(one.id, 0, 1) if one.is_group else ledger.markers_of(one.id)
        if not has_marker:
            counts[one.is_group] += 1
            changes += deleted_rows(store, one)
    # also delete groups that have no quota row, because older versions stored groups without a quota row
    for group_id, row in all_rows(store, GROUPS):
        record = GroupRecord.decode(row)
        if group_id not in tracked and record.maker not in own and not ledger.blocks(group_id, 0, 1):
            counts[1] += 1
            changes += deleted_rows(store, ExpiredRecord(True, group_id, None))
    for start in range(0, len(changes), _WRITTEN_AT_ONCE):
        store.write_rows(changes[start : start + _WRITTEN_AT_ONCE])
    return counts[0], counts[1]


def deleted_rows(store: Store, one: ExpiredRecord) -> list[Change]:
    """Return the database changes that delete a payload or a group."""
    keys: Iterable[bytes] = ()
    if one.is_group:
        row = store.row(GROUPS, one.id)
        changes: list[Change] = [(UNMARKED, b"g" + one.id, None), (GROUPS, one.id, None)]
        if row is not None:
            keys = GroupRecord.decode(row).members
            changes.append((LOOKUP, lookup_id(list(keys)) + one.id, None))
    else:
        row = store.row(PAYLOADS, one.id)
        changes = [(UNMARKED, b"p" + one.id, None), (PAYLOADS, one.id, None)]
        keys = () if row is None else read_sealed(row).recipients
    if one.number is not None:
        changes += [(ARRIVALS, numbered(key, one.number), None) for key in keys]
    return changes
