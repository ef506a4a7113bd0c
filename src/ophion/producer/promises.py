"""`Promises`: what this validator has told others, on disk before it is told.

A validator that forgot its prepares could vote twice at a height, so the record is written before the message leaves.
"""

from __future__ import annotations

from typing import Final

from ophion.consensus.bft.memory import Memory
from ophion.consensus.bft.scribe import Dialect
from ophion.errors import DecodeError, StorageError
from ophion.native.failures import translated
from ophion.native.store import Store
from ophion.runtime.lanes import Lanes

MEMORY_KEY: Final = "bft-memory"
"""Under which the database keeps it: name of the dialect, a zero byte, the record. Empty in a backup."""


class Promises:
    """The record of one validator."""

    def __init__(self, store: Store, lanes: Lanes) -> None:
        self._store = store
        self._lanes = lanes

    @property
    def is_blank(self) -> bool:
        """Whether nothing was ever promised here: a new validator, one that lost its disk, or a restored backup."""
        return not self._store.meta(MEMORY_KEY)

    async def remember(self, dialect: Dialect, memory: Memory) -> None:
        """Returns when it is on disk."""
        record = dialect.name.encode() + b"\0" + memory.encode()

        def write() -> None:
            with translated():
                self._store.put_meta(MEMORY_KEY, record)

        await self._lanes.write.run(write)

    def recall(self, dialect: Dialect) -> Memory | None:
        """What an earlier run has promised; nothing of another dialect, which was another height."""
        record = self._store.meta(MEMORY_KEY)
        if not record:
            return None
        name, _, stored = record.partition(b"\0")
        if name != dialect.name.encode():
            return None
        try:
            return Memory.decode(stored, dialect)
        except DecodeError as error:
            raise StorageError(
                f"What this validator has promised to others cannot be read ({error}); run `ophion storage check`."
            ) from error
