"""Audit log of rule changes: who, when, what. One JSON object per line, in the data directory.

The file rotates when it is full, so its size is bounded. If a record cannot be written, the node logs an error, and the
change stays.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ophion.chain.events import ChainBlock, ChainEvent, Reorged
from ophion.permissions.allow_list import AllowList, ListChanged
from ophion.permissions.contract_changes import ContractChanges
from ophion.runtime.clock import Clock
from ophion.runtime.principal import SUBJECT
from ophion.runtime.thread_pools import Lane

log = logging.getLogger(__name__)

NAME: Final = "permissions-audit.jsonl"
_MAX_BYTES: Final = 8 * 1024 * 1024
_MAX_FILES: Final = 4


class AuditLog:
    """Appends records in the order of changes. A worker thread writes the records, because a record may be large."""

    def __init__(
        self, path: Path, clock: Clock, lane: Lane, max_bytes: int = _MAX_BYTES, max_files: int = _MAX_FILES
    ) -> None:
        self._path = path
        self._clock = clock
        self._lane = lane
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._last: asyncio.Future[None] | None = None

    def follow_list(self, kind: str, listed: AllowList[Any]) -> None:
        """Record the changes of a list."""
        listed.changed.listen(lambda change: self._list_changed(kind, listed, change))

    def follow_contracts(self, changes: ContractChanges) -> Callable[[ChainEvent], None]:
        """Return a chain listener that records changes made by transactions."""

        def on_event(event: ChainEvent) -> None:
            if isinstance(event, Reorged):
                for block in event.removed:
                    self._block_changed(changes, block, {"undone": True})
            for block in event.added if isinstance(event, Reorged) else event.blocks:
                self._block_changed(changes, block, {})

        return on_event

    def record(self, make: Callable[[], Sequence[dict[str, Any]]]) -> None:
        """Append the records that `make` returns, with the current time."""
        time = datetime.fromtimestamp(self._clock.now(), UTC).isoformat().replace("+00:00", "Z")

        def write() -> None:
            for entry in make():
                self._append({"time": time, **entry})

        self._last = self._lane.submit(write)

    async def written(self) -> None:
        """Wait until all records are in the file."""
        if self._last is not None:
            await asyncio.shield(self._last)

    def _append(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, separators=(",", ":")).encode() + b"\n"
        try:
            self._turn_over(len(line))
            with self._path.open("ab") as file:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            log.error("permission change not recorded in the audit log file=%s error=%s", self._path, error.strerror)

    def _turn_over(self, more: int) -> None:
        if not self._path.exists() or self._path.stat().st_size + more <= self._max_bytes:
            return
        for number in range(self._max_files, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            newer = self._path if number == 1 else self._path.with_name(f"{self._path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)

    def _list_changed(self, kind: str, listed: AllowList[Any], change: ListChanged[Any]) -> None:
        write, after, by = listed.file.codec.write, len(listed.entries), SUBJECT.get()
        self.record(
            lambda: [
                {
                    "rules": kind,
                    "source": "file",
                    "file": str(listed.file.path),
                    "by": by,
                    "added": [write(item) for item in change.added],
                    "removed": [write(item) for item in change.removed],
                    "before": after - len(change.added) + len(change.removed),
                    "after": after,
                }
            ]
        )

    def _block_changed(self, changes: ContractChanges, block: ChainBlock, more: dict[str, Any]) -> None:
        if changes.may_be_in(block):
            self.record(lambda: [entry | more for entry in changes.of(block)])
