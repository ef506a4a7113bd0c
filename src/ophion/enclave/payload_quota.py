"""`PayloadQuota`: limits the payloads and groups that other enclaves may store here before a marker transaction on the
chain refers to them.

A payload or a group costs its sender nothing until a marker transaction is mined, and enclave keys are free to
generate. So payloads and groups without a marker transaction count against a budget and expire. Unknown senders share
one budget. A sender that has had a marker transaction on the chain is known and has its own budget. The rows are on
disk, so a restart does not reset the budgets.

    p + payload key    sender (32), bytes (8), time (8), number of arrival (8)
    g + group id       maker (32), 1 (8), time (8), number of arrival (8)
    s + enclave key    nothing: the sender is known
    f                  fetched bytes (8), start of their period (8)
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ophion.enclave.store_writer import PAYLOADS, UNMARKED, Change
from ophion.native.enclave import read_sealed
from ophion.native.exceptions import NativeError
from ophion.native.privacy import PrivateLedger
from ophion.native.store import Store

log = logging.getLogger(__name__)

MAX_BYTES: Final = 256 * 1024 * 1024
"""Maximum payload bytes without a marker transaction, of one known sender or of all unknown senders together."""
MAX_KNOWN_BYTES: Final = 4 * 1024 * 1024 * 1024
"""Maximum payload bytes without a marker transaction, of all known senders together."""
RESERVED_BYTES: Final = 1024 * 1024
"""Bytes that a known sender may store even if all known senders together have reached their limit."""
MAX_PAYLOADS: Final = 200_000
_MIN_COST: Final = MAX_BYTES // MAX_PAYLOADS
"""Minimum number of bytes that a payload counts, because rows and indexes take space too."""
MAX_FETCHED_BYTES: Final = 8 * 1024 * 1024 * 1024
"""Maximum payload bytes that this node fetches from members in one period, for example after it has lost its
database.
"""
FETCHED_PERIOD_S: Final = 30 * 24 * 3600.0
MAX_UNKNOWN_GROUPS: Final = 10_000
"""Maximum number of groups without a marker transaction, of all unknown senders together."""
MAX_GROUPS_OF_ONE: Final = 10_000
"""Maximum number of groups without a marker transaction, of one known sender."""
UNKNOWN_EXPIRY_S: Final = 3 * 24 * 3600.0
KNOWN_EXPIRY_S: Final = 30 * 24 * 3600.0
_WARNING_INTERVAL_S: Final = 600.0
_UNKNOWN: Final = b""
_PAYLOAD, _GROUP, _SENDER, _FETCHED = b"p", b"g", b"s", b"f"
_PAGE: Final = 1000
_NOTHING: Final = b"\0"


class _Unmarked(Struct, frozen=True):
    """A payload or a group from another enclave. No marker transaction refers to it."""

    kind: bytes
    sender: bytes
    cost: int
    time: float
    number: int

    def row(self, id: bytes) -> Change:
        numbers = (self.cost, int(self.time), self.number)
        return UNMARKED, self.kind + id, self.sender + b"".join(one.to_bytes(8, "big") for one in numbers)


class ExpiredRecord(Struct, frozen=True):
    """A payload or a group that has expired."""

    is_group: bool
    id: bytes
    number: int | None
    """Sequence number of the arrival, under which the payload or group is listed; None if it is unknown."""


class PayloadQuota:
    """Counts bytes and groups by sender, and decides whether further payloads and groups are accepted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._open: dict[bytes, _Unmarked] = {}
        """Payloads and groups without a marker transaction, by kind and id."""
        self._bytes: Counter[bytes] = Counter()
        self._groups: Counter[bytes] = Counter()
        self._known: set[bytes] = set()
        self._fetched = 0
        self._fetched_since = 0
        self._warned_at = -_WARNING_INTERVAL_S
        self._is_upgrade = not store.rows(UNMARKED, b"", b"", 1)
        self._load()

    # --- admission -------------------------------------------------------------------------------

    def admits_payload(self, sender: bytes, size: int, now: float) -> bool:
        """Whether the sender may store one more payload of this size without a marker transaction."""
        account, cost = self._account(sender), max(size, _MIN_COST)
        used = self._bytes[account] + cost
        known_bytes = self._bytes.total() - self._bytes[_UNKNOWN]
        is_full = account != _UNKNOWN and known_bytes + cost > MAX_KNOWN_BYTES and used > RESERVED_BYTES
        if used <= MAX_BYTES and not is_full:
            return True
        self._warn("payloads", account, now)
        return False

    def admits_group(self, maker: bytes, now: float) -> bool:
        """Whether the creator may store one more group without a marker transaction."""
        account = self._account(maker)
        if self._groups[account] < (MAX_UNKNOWN_GROUPS if account == _UNKNOWN else MAX_GROUPS_OF_ONE):
            return True
        self._warn("groups", account, now)
        return False

    def admits_fetched(self, size: int, now: float) -> bool:
        """Whether one more payload of this size may be fetched in the current period. Fetched bytes count until the end
        of the period, even after a restart.
        """
        if now - self._fetched_since > FETCHED_PERIOD_S:
            self._fetched, self._fetched_since = 0, int(now)
        return self._fetched + size <= MAX_FETCHED_BYTES

    # --- counting and releasing ------------------------------------------------------------------

    def add_payload(self, key: bytes, sender: bytes, size: int, now: float, number: int) -> Change:
        """Count a payload against the budget of its sender. Returns the database row to write."""
        return self._add(key, _Unmarked(_PAYLOAD, sender, max(size, _MIN_COST), now, number))

    def add_fetched(self, size: int) -> Change:
        """Count a fetched payload against the budget for fetched bytes. Returns the database row to write."""
        self._fetched += size
        return UNMARKED, _FETCHED, self._fetched.to_bytes(8, "big") + self._fetched_since.to_bytes(8, "big")

    def add_group(self, group_id: bytes, maker: bytes, now: float, number: int) -> Change:
        """Count a group against the budget of its creator. Returns the database row to write."""
        return self._add(group_id, _Unmarked(_GROUP, maker, 1, now, number))

    def _add(self, id: bytes, one: _Unmarked) -> Change:
        self._drop(one.kind + id)
        self._open[one.kind + id] = one
        self._count(one, 1)
        return one.row(id)

    def _drop(self, key: bytes) -> None:
        one = self._open.pop(key, None)
        if one is not None:
            self._count(one, -1)

    def _count(self, one: _Unmarked, sign: int) -> None:
        counter = self._bytes if one.kind == _PAYLOAD else self._groups
        counter[self._account(one.sender)] += sign * one.cost

    def mark(self, payloads: Iterable[bytes], groups: Iterable[bytes], senders: Iterable[bytes]) -> list[Change]:
        """Record that marker transactions refer to these payloads and groups, and that these senders are known. Returns
        the database rows to change.
        """
        changes: list[Change] = []
        for kind, ids in ((_PAYLOAD, payloads), (_GROUP, groups)):
            for id in ids:
                if kind + id in self._open:
                    self._drop(kind + id)
                    changes.append((UNMARKED, kind + id, None))
        for sender in senders:
            if sender not in self._known:
                self._become_known(sender)
                changes.append((UNMARKED, _SENDER + sender, _NOTHING))
        return changes

    def _become_known(self, sender: bytes) -> None:
        """Move the counted payloads and groups of a sender from the shared budget to its own budget."""
        theirs = [one for one in self._open.values() if one.sender == sender]
        for one in theirs:
            self._count(one, -1)
        self._known.add(sender)
        for one in theirs:
            self._count(one, 1)

    def refresh(self, group_id: bytes, now: float) -> list[Change]:
        """Restart the expiry time of a group that got a payload, so that the group does not expire before the
        payload.
        """
        one = self._open.get(_GROUP + group_id)
        return [] if one is None else [self._add(group_id, replace(one, time=now))]

    def expired(self, now: float, most: int) -> list[ExpiredRecord]:
        """Return at most `most` expired payloads and groups."""
        found: list[ExpiredRecord] = []
        for key, one in self._open.items():
            if now - one.time > (KNOWN_EXPIRY_S if one.sender in self._known else UNKNOWN_EXPIRY_S):
                found.append(ExpiredRecord(one.kind == _GROUP, key[1:], one.number))
                if len(found) == most:
                    break
        return found

    def forget(self, expired: Iterable[ExpiredRecord]) -> list[Change]:
        """Stop counting deleted payloads and groups. Returns the database rows to delete."""
        changes: list[Change] = []
        for one in expired:
            key = (_GROUP if one.is_group else _PAYLOAD) + one.id
            self._drop(key)
            changes.append((UNMARKED, key, None))
        return changes

    def _account(self, sender: bytes) -> bytes:
        return sender if sender in self._known else _UNKNOWN

    def _warn(self, what: str, account: bytes, now: float) -> None:
        if now - self._warned_at < _WARNING_INTERVAL_S:
            return
        self._warned_at = now
        log.warning(
            "refusing private %s without a marker: the budget is used up senders=%s payload_bytes=%d groups=%d."
            " They expire by themselves; `ophion privacy purge` deletes them now, and --privacy-accept-groups-from"
            " names the members whose groups are accepted",
            what,
            "unknown" if account == _UNKNOWN else account.hex(),
            self._bytes[account],
            self._groups[account],
        )

    def _load(self) -> None:
        rows = list(all_rows(self._store, UNMARKED))
        self._known.update(key[1:] for key, _ in rows if key[:1] == _SENDER)
        if self._is_upgrade:
            self._known.update(senders_with_markers(self._store))
        for key, value in rows:
            if key == _FETCHED:
                self._fetched, self._fetched_since = (int.from_bytes(value[at : at + 8], "big") for at in (0, 8))
            elif key[:1] in (_PAYLOAD, _GROUP):
                cost, time, number = (int.from_bytes(value[at : at + 8], "big") for at in (32, 40, 48))
                one = self._open[key] = _Unmarked(key[:1], value[:32], cost, float(time), number)
                self._count(one, 1)

    def upgrade_rows(self) -> list[Change]:
        """Return rows that record the known senders in a database of an older version, which did not record them. The
        rows are written once.
        """
        return [(UNMARKED, _SENDER + sender, _NOTHING) for sender in self._known] if self._is_upgrade else []


def unmarked_rows(store: Store) -> Iterable[ExpiredRecord]:
    """Yield every payload and group without a marker transaction, expired or not."""
    for key, value in all_rows(store, UNMARKED):
        if key[:1] in (_PAYLOAD, _GROUP):
            yield ExpiredRecord(key[:1] == _GROUP, key[1:], int.from_bytes(value[48:56], "big"))


def all_rows(store: Store, table: str) -> Iterable[tuple[bytes, bytes]]:
    """Yield all (key, value) rows of a database table, which are read in pages."""
    after = b""
    while rows := store.rows(table, b"", after, _PAGE):
        yield from rows
        after = rows[-1][0]


def senders_with_markers(store: Store) -> set[bytes]:
    """Return the senders of stored payloads that a marker transaction on the canonical chain refers to."""
    ledger, found = PrivateLedger(store), set[bytes]()
    for key, record in all_rows(store, PAYLOADS):
        try:
            sender = read_sealed(record).sender
        except NativeError:
            continue
        if sender not in found and ledger.markers_of(key):
            found.add(sender)
    return found
