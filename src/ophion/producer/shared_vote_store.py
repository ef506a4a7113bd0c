"""`SharedVoteStore`: a store in which all nodes with one validator key agree on what the key has signed."""

from __future__ import annotations

from typing import Protocol

from ophion.consensus.bft.vote_record import VoteRecord, replacement
from ophion.errors import OphionError


class VotesUnavailable(OphionError):
    """Raised when the store did not confirm a record. The store may still have stored the record."""

    transient = True


class SharedVoteStore(Protocol):
    """A store of one `VoteRecord` per validator key (interface)."""

    name: str
    """Address of the store, for logs and errors."""
    identity: str | None
    """Name of this store in the database record, without spaces. None for a store in memory, whose votes are lost when
    the process ends: the database must then hold each vote before it is sent.
    """
    keeps_proofs: bool
    """Whether the store keeps proofs of preparation beside the record."""
    kept_proof: bytes | None
    """The latest proof that this node has stored."""

    async def promise(self, wanted: VoteRecord, *, proof: bytes | None = None) -> VoteRecord | None:
        """Store a record by compare-and-swap. Returns None if the message of the record may be sent.

        Otherwise returns the stored record, which conflicts with the new record. Raises `VotesUnavailable`. `proof` is
        the encoded proof of the prepared block that `wanted` names. If the store writes the record, it writes the proof
        in the same transaction.
        """

    async def proof(self) -> bytes | None:
        """Return the latest proof of preparation that is stored for the validator key, or None.

        The proof may be of an earlier round than the stored record. Raises `VotesUnavailable`.
        """

    def close(self) -> None:
        """Close connections."""


class MemoryVoteStore:
    """`SharedVoteStore` in memory, for a key that only this node uses. The database keeps the votes across restarts."""

    name = "this process"
    identity: str | None = None
    keeps_proofs = False
    kept_proof: bytes | None = None

    def __init__(self, stored: VoteRecord | None = None) -> None:
        self._stored = stored

    async def promise(self, wanted: VoteRecord, *, proof: bytes | None = None) -> VoteRecord | None:
        record = replacement(self._stored, wanted)
        if record is None:
            return self._stored
        self._stored = record
        return None

    async def proof(self) -> bytes | None:
        return None

    def close(self) -> None:
        """Do nothing."""
