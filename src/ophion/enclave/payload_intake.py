"""`PayloadIntake`: validates payloads and groups of this and of other enclaves, and writes them to the database.

A payload of another enclave must pass these checks. A local key can decrypt it. The sender is a member of the payload's
group, and the recipients are exactly the group's members. If the payload is a private transaction, it names the same
sender and group. A payload that is stored under a key cannot be replaced.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec.structs import replace

from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import MAX_MEMBERS, MAX_TEXT_BYTES
from ophion.enclave.payload_exchange import EnclaveRecord, RecordKind, RecordLabel
from ophion.enclave.payload_quota import ExpiredRecord, PayloadQuota
from ophion.enclave.privacy_groups import NOT_ACCEPTED, GroupRegistry
from ophion.enclave.purge_unreferenced import deleted_rows
from ophion.enclave.store_writer import ARRIVALS, PAYLOADS, Change, StoreWriter, number_of, numbered
from ophion.enclave.tessera.sealed_payloads import is_same_payload, with_box
from ophion.errors import DecodeError
from ophion.native.enclave import MAX_SEALED_BOXES, EnclaveKeyring, SealedRecord, is_sound_enclave_key, read_sealed
from ophion.native.exceptions import NativeError
from ophion.native.privacy import PrivateLedger
from ophion.native.store import Store
from ophion.runtime.clock import Clock
from ophion.runtime.thread_pools import Lanes

log = logging.getLogger(__name__)

MAX_RECORD_BYTES: Final = MAX_TEXT_BYTES + 256 + MAX_SEALED_BOXES * 80
"""Maximum size of a sealed record in bytes: the payload in base64, and its header."""
UNKNOWN_GROUP: Final = "its group is unknown"
BUDGET_EXCEEDED: Final = "too many payloads of its sender wait for their markers"
TOO_MANY_GROUPS: Final = "there are too many groups without a transaction"
_EXPIRED_AT_ONCE: Final = 1000
_JUDGED_AT_ONCE: Final = 8
"""Maximum number of payloads to decrypt, or of keys to validate, on the event loop. A worker thread handles larger
numbers.
"""


class PayloadIntake:
    """Validates arriving payloads and groups, numbers them in order of arrival, and writes them to the database."""

    def __init__(
        self,
        store: Store,
        keyring: EnclaveKeyring,
        lanes: Lanes,
        groups: GroupRegistry,
        writer: StoreWriter,
        clock: Clock,
        max_gas: int | None = None,
    ) -> None:
        """Create the intake. `max_gas` is the maximum accepted gas limit of a pushed transaction."""
        self._store = store
        self._keyring = keyring
        self._lanes = lanes
        self._groups = groups
        self._writer = writer
        self._own = frozenset(keyring.public_keys)
        self._unwritten: dict[bytes, bytes] = {}
        """Sealed payloads that are being written to the database, by payload key."""
        self._clock = clock
        self._max_gas = max_gas
        self._quota = PayloadQuota(store)
        last = (store.last_row(ARRIVALS, key) for key in self._own)
        self._number = max((number_of(row[0]) for row in last if row is not None), default=0)

    def has(self, key: bytes) -> bool:
        """Whether a payload is stored."""
        return key in self._unwritten or self._store.row(PAYLOADS, key) is not None

    def mark(self, keys: Iterable[bytes], groups: Iterable[bytes], senders: Iterable[bytes]) -> None:
        """Record that marker transactions refer to these payloads and groups. They no longer count against their
        senders, and do not expire.
        """
        self._writer.write_soon(self._quota.mark(keys, groups, (one for one in senders if one not in self._own)))

    async def upgrade(self) -> None:
        """Record the known senders (`PayloadQuota`) in a database of an older version, which did not record them."""
        await self._writer.write(self._quota.upgrade_rows())

    async def expire(self) -> int:
        """Delete payloads and groups that other enclaves sent and that got no marker transaction before their expiry.
        Returns the number of deleted items.
        """
        expired = self._quota.expired(self._clock.now(), _EXPIRED_AT_ONCE)
        ledger = PrivateLedger(self._store)
        marked = [one for one in expired if _has_marker(ledger, one)]
        self.mark((one.id for one in marked if not one.is_group), (one.id for one in marked if one.is_group), ())
        dead = [one for one in expired if one not in marked]
        if dead:
            await self._writer.write(self._expiry_rows(dead))
            log.info("deleted payloads and groups without a marker count=%d", len(dead))
        return len(dead)

    def _expiry_rows(self, dead: Sequence[ExpiredRecord]) -> list[Change]:
        changes = self._quota.forget(dead)
        for one in dead:
            changes += deleted_rows(self._store, one)
            group = self._groups.get(one.id) if one.is_group else None
            if group is not None:
                self._groups.forget(group)
        return changes

    async def keep(self, key: bytes, record: bytes, recipients: Sequence[bytes], group: GroupRecord) -> None:
        """Store a payload that this enclave sends. If its group is new, store the group too."""
        made = self._new_group(group)
        changes = [*self._group_rows(made), *self._payload_rows(key, record, recipients)]
        await self._write(changes, {key: record}, made)

    async def keep_group(self, group: GroupRecord) -> None:
        """Store a group that this enclave creates or changes."""
        await self._write(self._group_rows([group]), {}, [group])

    async def take(
        self,
        entries: Sequence[EnclaveRecord],
        proven: frozenset[bytes],
        is_pushed: bool,
        arrived: Callable[[Sequence[bytes]], None],
    ) -> list[str | None]:
        """Store the valid payloads and groups of another enclave. Returns None for each stored item, and the reason for
        each refused item.

        `proven` are the enclave keys that the sending peer has proven. A pushed payload (`is_pushed`) must come from
        its sender; a fetched payload may come from any peer. `arrived` is called with the keys of the new payloads once
        the payloads are durable, even if the peer has disconnected.
        """
        payloads = [one.body for one in entries if one.label.kind is RecordKind.PAYLOAD]
        judged = await self._judge(payloads, proven if is_pushed else None)
        await self._validate_keys(entries, judged)
        verdicts = iter(judged)
        changes: list[Change] = []
        records: dict[bytes, bytes] = {}
        made: list[GroupRecord] = []
        refusals: list[str | None] = []
        for entry in entries:
            if entry.label.kind is RecordKind.GROUP:
                refusals.append(self._take_group(entry, proven, is_pushed, changes, made))
            else:
                refusals.append(self._take_payload(entry, next(verdicts), proven if is_pushed else None, changes, made))
                if refusals[-1] is None and not self.has(entry.label.id):
                    records[entry.label.id] = self._unwritten[entry.label.id] = entry.body
        # write even without changes, to wait for the commit of payloads and groups that an earlier call accepted
        await self._write(changes, records, made, arrived)
        return refusals

    # --- validation ------------------------------------------------------------------------------

    async def _judge(self, records: list[bytes], proven: frozenset[bytes] | None) -> list[SealedRecord | None]:
        if proven is not None:
            # decrypt only payloads of senders that have proven their key, because computing a shared secret is
            # expensive
            records = [record if _sender(record) in proven else b"" for record in records]
        if len(records) <= _JUDGED_AT_ONCE and sum(map(len, records)) <= 64 * 1024:
            return self._keyring.judge(records)
        return await self._lanes.peers.run(partial(self._keyring.judge, records))

    async def _validate_keys(self, entries: Sequence[EnclaveRecord], judged: Sequence[SealedRecord | None]) -> None:
        """Validate the member keys of new groups. Many keys are validated in a worker thread, because the peer chooses
        their number.
        """
        members: set[bytes] = set()
        for sealed in judged:
            if sealed is not None and sealed.opens and self._groups.get(sealed.group) is None:
                members.update(sealed.recipients[: sealed.members])
        for entry in entries:
            if entry.label.kind is RecordKind.GROUP and self._groups.get(entry.label.id) is None:
                with suppress(DecodeError):
                    members.update(GroupRecord.decode(entry.body).members)
        unvalidated = self._groups.unvalidated(members)
        validate = partial(_valid_keys, unvalidated)
        self._groups.note_valid(
            validate() if len(unvalidated) <= _JUDGED_AT_ONCE else await self._lanes.peers.run(validate)
        )

    def _take_payload(
        self,
        entry: EnclaveRecord,
        sealed: SealedRecord | None,
        proven: frozenset[bytes] | None,
        changes: list[Change],
        made: list[GroupRecord],
    ) -> str | None:
        if len(entry.body) > MAX_RECORD_BYTES:
            return "it is too large"
        if sealed is None:
            return "its sender's key is not proven" if _sender(entry.body) is not None else "it is no sealed payload"
        if sealed.key != entry.label.id:
            return "it is not what its label says"
        known = self._unwritten.get(sealed.key) or self._store.row(PAYLOADS, sealed.key)
        if known is not None:
            is_stored = known == entry.body or (sealed.opens and is_same_payload(known, entry.body))
            return None if is_stored else "another record has its key"
        if not sealed.opens:
            return "it does not open"
        if not sealed.agrees:
            return "the transaction in it names another sender or group"
        recipients = sealed.recipients
        members = tuple(recipients[: sealed.members])
        if sealed.sender not in members:
            return "its sender is no member"
        is_pushed = proven is not None
        if is_pushed and self._max_gas is not None and (sealed.gas_limit or 0) > self._max_gas:
            return f"the gas limit of its transaction is above {self._max_gas}, the maximum here"
        size, now = len(entry.body), self._clock.now()
        admits = (
            self._quota.admits_payload(sealed.sender, size, now) if is_pushed else self._quota.admits_fetched(size, now)
        )
        if not admits:
            return BUDGET_EXCEEDED
        refusal = self._take_its_group(sealed, members, is_pushed, changes, made)
        if refusal is None:
            # send a payload of Tessera only to members whose box it contains; the other members could not decrypt it
            changes += self._payload_rows(sealed.key, entry.body, with_box(entry.body, recipients))
            if is_pushed:
                changes.append(self._quota.add_payload(sealed.key, sealed.sender, size, now, self._number))
            else:
                changes.append(self._quota.add_fetched(size))
        return refusal

    def _take_its_group(
        self,
        sealed: SealedRecord,
        members: tuple[bytes, ...],
        is_pushed: bool,
        changes: list[Change],
        made: list[GroupRecord],
    ) -> str | None:
        group = self._groups.get(sealed.group)
        if group is not None:
            if is_pushed and not group.active:
                return "its group was deleted"
            changes += self._quota.refresh(sealed.group, self._clock.now())
            return None if set(group.members) == set(members) else "its recipients are not its group"
        if not sealed.is_legacy:
            return UNKNOWN_GROUP
        if len(members) > MAX_MEMBERS:
            return "its group is too large"
        group = GroupRecord.legacy(members, sealed.sender)
        # this node is no member of the group; it gets a copy because the sender lists it in --privacy-always-send-to
        if not self._own.intersection(members):
            return None if self._groups.accepts_maker(sealed.sender) else NOT_ACCEPTED
        return self._add_foreign_group(group, changes, made)

    def _add_foreign_group(self, group: GroupRecord, changes: list[Change], made: list[GroupRecord]) -> str | None:
        refusal, now = self._groups.problem(group), self._clock.now()
        if refusal is None and not self._quota.admits_group(group.maker, now):
            refusal = TOO_MANY_GROUPS
        if refusal is None:
            made.append(group)
            changes += self._group_rows([group])
            changes.append(self._quota.add_group(group.id, group.maker, now, self._number))
        return refusal

    def _take_group(
        self,
        entry: EnclaveRecord,
        proven: frozenset[bytes],
        is_pushed: bool,
        changes: list[Change],
        made: list[GroupRecord],
    ) -> str | None:
        try:
            record = GroupRecord.decode(entry.body)
        except DecodeError as error:
            return str(error)
        if record.id != entry.label.id:
            return "it is not what its label says"
        known = self._groups.get(record.id)
        if known is not None and (record.active or not known.active):
            return None
        if not proven.intersection(record.members):
            return "it comes from no member"
        if known is not None:
            record = known.deleted()
        else:
            # count the group against the peer that delivers it, so that the peer cannot use up the limit of another
            # member
            maker = record.maker if record.maker in proven else min(proven.intersection(record.members))
            return self._add_foreign_group(replace(record, maker=maker), changes, made)
        made.append(record)
        changes += self._group_rows([record])
        return None

    # --- rows ------------------------------------------------------------------------------------

    def _new_group(self, group: GroupRecord) -> list[GroupRecord]:
        return [group] if self._groups.get(group.id) is None else []

    def _group_rows(self, groups: Iterable[GroupRecord]) -> list[Change]:
        changes: list[Change] = []
        for group in groups:
            changes += self._groups.put(group)
            changes += self._arrival_rows(RecordLabel(RecordKind.GROUP, group.id), group.members)
        return changes

    def _payload_rows(self, key: bytes, record: bytes, recipients: Sequence[bytes]) -> list[Change]:
        return [(PAYLOADS, key, record), *self._arrival_rows(RecordLabel(RecordKind.PAYLOAD, key), recipients)]

    def _arrival_rows(self, label: RecordLabel, keys: Sequence[bytes]) -> list[Change]:
        self._number += 1
        encoded = label.encode()
        return [(ARRIVALS, numbered(key, self._number), encoded) for key in keys]

    async def _write(
        self,
        changes: Sequence[Change],
        records: dict[bytes, bytes],
        groups: Sequence[GroupRecord],
        arrived: Callable[[Sequence[bytes]], None] | None = None,
    ) -> None:
        def settled(is_written: bool) -> None:
            for key in records:
                self._unwritten.pop(key, None)
            for group in groups:
                self._groups.written(group)
            if is_written and records and arrived is not None:
                arrived(list(records))

        self._unwritten.update(records)
        await self._writer.write(changes, settled)


def _has_marker(ledger: PrivateLedger, one: ExpiredRecord) -> bool:
    return bool(ledger.blocks(one.id, 0, 1) if one.is_group else ledger.markers_of(one.id))


def _valid_keys(keys: list[bytes]) -> list[bytes]:
    return [key for key in keys if is_sound_enclave_key(key)]


def _sender(record: bytes) -> bytes | None:
    """Return the enclave key of the sender that a sealed payload names, or None for other bytes."""
    try:
        return read_sealed(record).sender
    except NativeError:
        return None


def group_id_of(entry: EnclaveRecord) -> bytes:
    """Return the id of a group, or the id of the group to which a payload belongs. Returns empty bytes if the id cannot
    be read.
    """
    if entry.label.kind is RecordKind.GROUP:
        return entry.label.id
    try:
        return read_sealed(entry.body).group
    except NativeError:
        return b""
