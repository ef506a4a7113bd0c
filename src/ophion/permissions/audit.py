"""A record of every change of rules: who, when, what; one JSON object a line, in the data directory.

The file is turned over when it is full and a few old ones are kept, so its size is bounded. A record that cannot be
written is an error in the log; the change stands, because it has been made already.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ophion.chain.events import ChainBlock, ChainEvent, Reorged
from ophion.native.crypto import keccak256
from ophion.native.store import Store
from ophion.permissions.allow_list import AllowList, ListChanged
from ophion.primitives.types import Address
from ophion.runtime.clock import Clock
from ophion.runtime.subject import SUBJECT

log = logging.getLogger(__name__)

NAME: Final = "permissions-audit.jsonl"
_MOST_BYTES: Final = 8 * 1024 * 1024
_KEPT: Final = 4


def _topic(signature: str) -> str:
    return "0x" + keccak256(signature.encode()).hex()


_EVENTS: Final = {
    _topic("AccountAdded(bool,address)"): ("accounts", "added"),
    _topic("AccountRemoved(bool,address)"): ("accounts", "removed"),
    _topic("NodeAdded(bool,bytes32,bytes32,bytes16,uint16)"): ("nodes", "added"),
    _topic("NodeRemoved(bool,bytes32,bytes32,bytes16,uint16)"): ("nodes", "removed"),
}


class AuditLog:
    """Appends records. Belongs to the event loop: changes are rare, and each is one short write."""

    def __init__(self, path: Path, clock: Clock, most_bytes: int = _MOST_BYTES, kept: int = _KEPT) -> None:
        self._path = path
        self._clock = clock
        self._most_bytes = most_bytes
        self._kept = kept

    def follow_list(self, kind: str, listed: AllowList[Any]) -> None:
        """Record the changes of a list."""
        listed.changed.listen(lambda change: self._list_changed(kind, listed, change))

    def follow_contracts(self, store: Store, contracts: dict[str, Address]) -> ChainListener:
        """What to do with the events of a chain so that changes made by transactions are recorded."""
        return ChainListener(self, store, contracts)

    def record(self, **entry: Any) -> None:
        """Append one record with the time of now."""
        time = datetime.fromtimestamp(self._clock.now(), UTC).isoformat().replace("+00:00", "Z")
        line = json.dumps({"time": time, **entry}, separators=(",", ":")).encode() + b"\n"
        try:
            self._turn_over(len(line))
            with self._path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            log.error("A change of permissions could not be recorded in %s: %s", self._path, error.strerror)

    def _turn_over(self, more: int) -> None:
        if not self._path.exists() or self._path.stat().st_size + more <= self._most_bytes:
            return
        for number in range(self._kept, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            newer = self._path if number == 1 else self._path.with_name(f"{self._path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)

    def _list_changed(self, kind: str, listed: AllowList[Any], change: ListChanged[Any]) -> None:
        write = listed.file.vocabulary.write
        after = len(listed.entries)
        self.record(
            rules=kind,
            source="file",
            file=str(listed.file.path),
            by=SUBJECT.get(),
            added=[write(item) for item in change.added],
            removed=[write(item) for item in change.removed],
            before=after - len(change.added) + len(change.removed),
            after=after,
        )


class ChainListener:
    """Finds the transactions that changed the rules of a contract, by what its ingress announces."""

    def __init__(self, audit: AuditLog, store: Store, contracts: dict[str, Address]) -> None:
        self._audit = audit
        self._store = store
        self._contracts = contracts

    def __call__(self, event: ChainEvent) -> None:
        for block in event.added if isinstance(event, Reorged) else event.blocks:
            bloom = block.header.header.logs_bloom
            for kind, contract in self._contracts.items():
                if block.body.transaction_count and in_bloom(bloom, contract):
                    self._record(kind, contract, block)

    def _record(self, kind: str, contract: Address, block: ChainBlock) -> None:
        found = self._store.block_logs_json(block.header.hash, [], [], False)
        logs: list[dict[str, Any]] = json.loads(found or b"[]")
        ingress = "0x" + contract.hex()
        for hash in dict.fromkeys(one["transactionHash"] for one in logs if one["address"] == ingress):
            own = [one for one in logs if one["transactionHash"] == hash]
            position = int(own[0]["transactionIndex"], 16)
            added, removed = (_entries(own, kind, verb) for verb in ("added", "removed"))
            self._audit.record(
                rules=kind,
                source="contract",
                contract=ingress,
                block=block.header.number,
                transaction=hash,
                by="0x" + block.body.transactions[position].sender.hex(),
                added=added,
                removed=removed,
            )


def in_bloom(bloom: bytes, data: bytes) -> bool:
    """Whether something may be among what a bloom filter holds; if not, it is certainly not."""
    value, hashed = int.from_bytes(bloom, "big"), keccak256(data)
    return all(value >> (int.from_bytes(hashed[at : at + 2], "big") & 2047) & 1 for at in (0, 2, 4))


def _entries(logs: list[dict[str, Any]], kind: str, verb: str) -> list[str]:
    """Entries named by events of rules that say that something was really changed."""
    entries = []
    for one in logs:
        words = bytes.fromhex(one["data"][2:])
        if not one["topics"] or _EVENTS.get(one["topics"][0]) != (kind, verb) or not any(words[:32]):
            continue
        entries.append("0x" + (words[44:64] if kind == "accounts" else words[32:]).hex())
    return entries
