"""`VoteStore`: stores this validator's votes on disk before they are sent.

A validator that lost its votes could vote twice at a height.
"""

from __future__ import annotations

from typing import Final

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.message_factory import BftProtocol
from ophion.errors import DecodeError, StorageError
from ophion.native.exceptions import translated
from ophion.native.store import Store
from ophion.primitives.types import Address
from ophion.runtime.thread_pools import Lanes

DURABLE_VOTES_KEY: Final = "bft-memory"
"""Database key of the votes.

The value is protocol name, validator address, a zero byte and the encoded votes. A backup omits the votes; records of
earlier versions have no address.
"""


def without_votes(record: bytes) -> bytes:
    """Return a copy of a vote record that names its validator but has no votes."""
    return record.partition(b"\0")[0] + b"\0"


class VoteStore:
    """Stores the votes of one validator. A database copied from another node contains the votes of that node."""

    def __init__(self, store: Store, lanes: Lanes, validator: Address) -> None:
        self._store = store
        self._lanes = lanes
        self._validator = validator.hex().encode()

    @property
    def is_blank(self) -> bool:
        """Whether the database has no votes of this validator: the database is new, or was copied from another
        validator.
        """
        return self._record() is None

    @property
    def other(self) -> str | None:
        """Address of another validator that wrote this database, if any."""
        _, validator, _ = self._parts()
        return None if validator in (b"", self._validator) else f"0x{validator.decode()}"

    async def remember(self, protocol: BftProtocol, durable_votes: DurableVotes) -> None:
        """Write the votes. Returns when they are on disk."""
        record = b" ".join((protocol.name.encode(), self._validator)) + b"\0" + durable_votes.encode()

        def write() -> None:
            with translated():
                self._store.put_meta(DURABLE_VOTES_KEY, record)

        await self._lanes.write.run(write)

    def recall(self, protocol: BftProtocol) -> DurableVotes | None:
        """Return the votes of an earlier run. Ignores votes of another protocol, which belong to an earlier height."""
        record = self._record()
        if record is None:
            return None
        name, stored = record
        if name != protocol.name.encode():
            return None
        try:
            return DurableVotes.decode(stored, protocol)
        except DecodeError as error:
            raise StorageError(
                f"The stored votes of this validator cannot be read ({error}); run `ophion storage check`."
            ) from error

    def _record(self) -> tuple[bytes, bytes] | None:
        """Return protocol name and encoded votes from the database. None if it has no votes of this validator."""
        name, validator, stored = self._parts()
        return (name, stored) if stored and validator in (b"", self._validator) else None

    def _parts(self) -> tuple[bytes, bytes, bytes]:
        whose, _, stored = (self._store.meta(DURABLE_VOTES_KEY) or b"").partition(b"\0")
        name, _, validator = whose.partition(b" ")
        return name, validator, stored
