"""Seals old payloads in the form of Ophion, and writes them with their groups into the database of a stopped node."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from ophion.enclave.group_record import GroupRecord
from ophion.enclave.groups import GroupRegistry
from ophion.enclave.store_writer import PAYLOADS, Change
from ophion.errors import DecodeError
from ophion.migration.private.old_formats import BOX_BYTES, OldPayload, legacy_group
from ophion.native.enclave import EnclaveKeyring, read_sealed
from ophion.native.exceptions import translated
from ophion.native.store import Store
from ophion.primitives import rlp

_VERSION: Final = 1
_BATCH_ROWS: Final = 256
_PRIVATE_FROM, _PRIVATE_FOR, _PRIVATE_FIELDS = 9, 10, 12
_ABSENT_BOX: Final = bytes(BOX_BYTES)
"""Placeholder for boxes of other participants, because recipients of Tessera and Orion get only their own box."""


class ImportedPayloads(Struct):
    """Report of an import: number of payloads by group, and the reasons for payloads that were not imported."""

    groups: dict[bytes, int] = field(default_factory=dict)
    """Number of payloads of each group."""
    members: dict[bytes, tuple[bytes, ...]] = field(default_factory=dict)
    known: int = 0
    """Number of payloads that the database already had."""
    refused: Counter[str] = field(default_factory=Counter)


class PayloadImport:
    """Imports the payloads that a local key opens."""

    def __init__(self, store: Store, keyring: EnclaveKeyring, groups: Iterable[GroupRecord]) -> None:
        """Create an import. `groups` are the groups that the old enclave has stored."""
        self._store = store
        self._keyring = keyring
        self._registry = GroupRegistry(store, keyring.public_keys)
        self._groups: Mapping[bytes, GroupRecord] = {group.id: group for group in groups}
        self.report = ImportedPayloads()

    def run(self, payloads: Iterable[tuple[bytes, OldPayload | DecodeError]]) -> ImportedPayloads:
        """Write payloads and their keys in batches. A killed run must start again from the beginning."""
        changes: list[Change] = []
        for key, old in payloads:
            try:
                if isinstance(old, DecodeError):
                    raise old
                changes += self._rows(key, old)
            except DecodeError as error:
                self.report.refused[str(error)] += 1
            if len(changes) >= _BATCH_ROWS:
                self._write(changes)
                changes = []
        self._write(changes)
        return self.report

    def _write(self, changes: list[Change]) -> None:
        with translated():
            self._store.write_rows(changes)

    def _rows(self, key: bytes, old: OldPayload) -> Iterator[Change]:
        if self._store.row(PAYLOADS, key) is not None:
            self.report.known += 1
            return
        own, box, text = self._opened(old)
        group = self._group_of(text)
        boxes = dict(zip(old.recipients, old.boxes, strict=False)) | {own: box}
        record = encode_record(old, group.id, {member: boxes.get(member, _ABSENT_BOX) for member in group.members})
        judged = self._keyring.judge([record])[0]
        if judged is None or not judged.agrees:
            raise DecodeError("the private transaction names another sender or group")
        if judged.key != key:
            raise DecodeError("its key is not SHA-512/256 of the ciphertext; Tessera must have run in orion mode")
        if self._registry.get(group.id) is None:
            changes = self._registry.put(group)
            self._registry.written(group)
            yield from changes
        self.report.groups[group.id] = self.report.groups.get(group.id, 0) + 1
        self.report.members[group.id] = group.members
        yield PAYLOADS, key, record

    def _opened(self, old: OldPayload) -> tuple[bytes, bytes, bytes]:
        """Return the local key, its box and the plain text. Tries all boxes, because Orion does not store their
        owners.
        """
        for own in self._keyring.public_keys:
            for box in old.boxes:
                text = self._keyring.open(encode_record(old, bytes(32), {own: box}))
                if text is not None:
                    return own, box, text
        raise DecodeError("no key of this enclave opens it")

    def _group_of(self, text: bytes) -> GroupRecord:
        try:
            items = rlp.decode_list(b64decode(text, validate=True))
        except (ValueError, DecodeError):
            raise DecodeError("it holds no private transaction") from None
        if len(items) != _PRIVATE_FIELDS:
            raise DecodeError("it holds no private transaction of Besu")
        sender, recipients = items[_PRIVATE_FROM], items[_PRIVATE_FOR]
        if isinstance(recipients, bytes):
            group = self._groups.get(recipients) or self._registry.get(recipients)
            if group is None:
                raise DecodeError(f"the old enclave has no group 0x{recipients.hex()}")
            return group
        keys = [key for key in (sender, *recipients) if isinstance(key, bytes)]
        return legacy_group(tuple(keys))


def encode_record(old: OldPayload, group: bytes, boxes: Mapping[bytes, bytes]) -> bytes:
    """Encode a sealed record (native/enclave/src/record.rs). All members of the group are recipients."""
    count = len(boxes).to_bytes(2, "big")
    head = bytes([_VERSION]) + old.sender + old.box_nonce + old.nonce + group + count + count
    record = head + b"".join(recipient + box for recipient, box in boxes.items()) + old.ciphertext
    with translated():
        read_sealed(record)
    return record
