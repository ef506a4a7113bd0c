"""`VoteStore`: what this validator has signed, on disk before it is sent.

A validator that forgot its prepares could vote twice at a height, so the record is written before the message leaves.
"""

from __future__ import annotations

from typing import Final

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.message_factory import Dialect
from ophion.errors import DecodeError, StorageError
from ophion.native.exceptions import translated
from ophion.native.store import Store
from ophion.primitives.types import Address
from ophion.runtime.lanes import Lanes

MEMORY_KEY: Final = "bft-memory"
"""Under which the database keeps it: name of the dialect, address of the validator, a zero byte, the record.

Without the last in a backup, and without an address where an earlier version has written it."""


def without_promises(record: bytes) -> bytes:
    """Whose it is, and nothing of what was promised."""
    return record.partition(b"\0")[0] + b"\0"


class VoteStore:
    """The record of one validator. A database that was copied from another one holds the promises of that one."""

    def __init__(self, store: Store, lanes: Lanes, validator: Address) -> None:
        self._store = store
        self._lanes = lanes
        self._validator = validator.hex().encode()

    @property
    def is_blank(self) -> bool:
        """Whether nothing of it is known here: a new validator, one that lost its disk, or another one's database."""
        return self._record() is None

    @property
    def other(self) -> str | None:
        """Address of another validator whose database this is; None where it is not known to be."""
        _, validator, _ = self._parts()
        return None if validator in (b"", self._validator) else f"0x{validator.decode()}"

    async def remember(self, dialect: Dialect, memory: DurableVotes) -> None:
        """Returns when it is on disk."""
        record = b" ".join((dialect.name.encode(), self._validator)) + b"\0" + memory.encode()

        def write() -> None:
            with translated():
                self._store.put_meta(MEMORY_KEY, record)

        await self._lanes.write.run(write)

    def recall(self, dialect: Dialect) -> DurableVotes | None:
        """What an earlier run has promised; nothing of another dialect, which was another height."""
        record = self._record()
        if record is None:
            return None
        name, stored = record
        if name != dialect.name.encode():
            return None
        try:
            return DurableVotes.decode(stored, dialect)
        except DecodeError as error:
            raise StorageError(
                f"What this validator has promised to others cannot be read ({error}); run `ophion storage check`."
            ) from error

    def _record(self) -> tuple[bytes, bytes] | None:
        """Name of the dialect, and the memory."""
        name, validator, stored = self._parts()
        return (name, stored) if stored and validator in (b"", self._validator) else None

    def _parts(self) -> tuple[bytes, bytes, bytes]:
        whose, _, stored = (self._store.meta(MEMORY_KEY) or b"").partition(b"\0")
        name, _, validator = whose.partition(b" ")
        return name, validator, stored
