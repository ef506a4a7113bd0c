"""Seals old payloads in the form of Ophion, and writes them with their groups into the database of a stopped node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field

from ophion.enclave.group_record import GroupRecord
from ophion.enclave.privacy_groups import GroupRegistry
from ophion.enclave.store_writer import PAYLOADS, Change
from ophion.enclave.tessera.payloads import TesseraPayload
from ophion.enclave.tessera.sealed_payloads import group_in, opened, record_for_member
from ophion.errors import DecodeError
from ophion.native.enclave import EnclaveKeyring
from ophion.native.exceptions import translated
from ophion.native.store import Store

_BATCH_ROWS: Final = 256


class ImportedPayloads(Struct):
    """Report of an import: number of imported payloads by group, and the reasons why other payloads were not
    imported.
    """

    groups: dict[bytes, int] = field(default_factory=dict)
    """Number of payloads of each group."""
    members: dict[bytes, tuple[bytes, ...]] = field(default_factory=dict)
    known: int = 0
    """Number of payloads that the database already had."""
    refused: Counter[str] = field(default_factory=Counter)


class PayloadImport:
    """Imports the payloads that a local key can decrypt."""

    def __init__(self, store: Store, keyring: EnclaveKeyring, groups: Iterable[GroupRecord]) -> None:
        """Create an import. `groups` are the groups that the old enclave has stored."""
        self._store = store
        self._keyring = keyring
        self._registry = GroupRegistry(store, keyring.public_keys)
        self._groups: Mapping[bytes, GroupRecord] = {group.id: group for group in groups}
        self.report = ImportedPayloads()

    def run(self, payloads: Iterable[tuple[bytes, TesseraPayload | DecodeError]]) -> ImportedPayloads:
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

    def _rows(self, key: bytes, old: TesseraPayload) -> Iterator[Change]:
        if self._store.row(PAYLOADS, key) is not None:
            self.report.known += 1
            return
        own, box, text = opened(self._keyring, old)
        group = group_in(text, self._known_group)
        record = record_for_member(old, group, own, box)
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

    def _known_group(self, group_id: bytes) -> GroupRecord:
        group = self._groups.get(group_id) or self._registry.get(group_id)
        if group is None:
            raise DecodeError(f"the old enclave has no group 0x{group_id.hex()}")
        return group
