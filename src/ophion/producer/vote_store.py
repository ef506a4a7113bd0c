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

The value is protocol name, validator address, identity of the shared vote store if one is used, a zero byte and the
encoded votes. A backup omits the votes; records of earlier versions have no address.
"""


def without_votes(record: bytes) -> bytes:
    """Return a copy of a vote record that names its validator but has no votes."""
    return record.partition(b"\0")[0] + b"\0"


class VoteStore:
    """Stores the votes of one validator. A database copied from another node contains the votes of that node.

    With a shared vote store, the database lacks some votes of this node, and all votes of other nodes with the same
    key. The database record therefore names the shared store. If the node runs without that store, it ignores the
    record and treats the validator as one that has lost its votes.
    """

    def __init__(self, store: Store, lanes: Lanes, validator: Address, shared: str | None = None) -> None:
        """Open the votes. `shared` is the identity of the shared vote store that is used now."""
        self._store = store
        self._lanes = lanes
        self._validator = validator.hex().encode()
        self._shared = b"" if shared is None else shared.encode()

    @property
    def is_blank(self) -> bool:
        """Whether the database does not know the votes of this validator: the database is new, was copied from another
        validator, or belongs to a shared vote store that is not used now.
        """
        return self._record() is None

    @property
    def other(self) -> str | None:
        """Address of another validator that wrote this database, if any."""
        _, validator, _, _ = self._parts()
        return None if validator in (b"", self._validator) else f"0x{validator.decode()}"

    @property
    def other_shared(self) -> str | None:
        """Identity of another shared vote store that has the latest votes, if any."""
        _, _, shared, stored = self._parts()
        return shared.decode() if stored and shared not in (b"", self._shared) else None

    async def remember(self, protocol: BftProtocol, durable_votes: DurableVotes) -> None:
        """Write the votes. Returns when they are on disk."""
        names = [protocol.name.encode(), self._validator, *([self._shared] if self._shared else [])]
        record = b" ".join(names) + b"\0" + durable_votes.encode()

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
        """Return protocol name and encoded votes from the database; None if the database has no usable votes
        (`is_blank`).
        """
        name, validator, shared, stored = self._parts()
        is_own = validator in (b"", self._validator) and shared in (b"", self._shared)
        return (name, stored) if stored and is_own else None

    def _parts(self) -> tuple[bytes, bytes, bytes, bytes]:
        """Return protocol name, validator, identity of the shared vote store, and encoded votes."""
        whose, _, stored = (self._store.meta(DURABLE_VOTES_KEY) or b"").partition(b"\0")
        name, _, rest = whose.partition(b" ")
        validator, _, shared = rest.partition(b" ")
        return name, validator, shared, stored
