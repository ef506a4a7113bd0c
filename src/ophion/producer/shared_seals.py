"""`SharedSeals`: the nodes of one Clique signer agree on the block that they seal on a parent.

A `VoteRecord` has a field for the height. Here this field holds the total difficulty of the parent, which only grows on
the chain of an honest signer. So a signer seals one block per parent, and may seal again after a reorganisation to a
heavier branch, which Clique allows.

The store keeps the block beside the record. If a node stops between its claim and its seal, another node of the signer
seals the same block. Without the stored block, the other node would have to wait for a block that never comes, and a
network with one signer would stop.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Protocol

from msgspec import Struct

from ophion.consensus.bft.vote_record import VoteRecord
from ophion.primitives.types import Hash32

MAX_SHARED_BLOCK_BYTES: Final = 1_000_000
"""Maximum size in bytes of a block that is stored with its claim, because etcd refuses requests above 1.5 MB."""


class SealStore(Protocol):
    """A store of vote records, each with the block that it refers to (interface)."""

    async def promise(self, wanted: VoteRecord, block: bytes | None = None) -> VoteRecord | None:
        """Store a record and its block by compare-and-swap. Returns None, or the stored record that conflicts with the
        new record.
        """

    async def block(self) -> bytes | None:
        """Return the block that is stored with the vote record, if any. Raises `VotesUnavailable`."""

    def close(self) -> None:
        """Close connections."""


class SealClaim(Enum):
    """Answer of the vote store to the claim of a block."""

    OURS = "ours"
    PARTNER = "partner"
    """Another node of this signer has claimed a block on the same parent."""
    BEHIND = "behind"
    """Another node of this signer has a heavier chain."""


class SealClaimResult(Struct, frozen=True):
    """Result of a claim. `digest` is the digest of the block that another node of the signer has claimed, if any."""

    claim: SealClaim
    digest: Hash32 | None = None


class SharedSeals:
    """Claims of the blocks that one Clique signer seals."""

    def __init__(self, store: SealStore) -> None:
        self._store = store

    async def claim(self, parent_weight: int, digest: Hash32, block: bytes) -> SealClaimResult:
        """Claim a block by the digest that its seal signs. Raises `VotesUnavailable`."""
        kept = block if len(block) <= MAX_SHARED_BLOCK_BYTES else b""
        stored = await self._store.promise(VoteRecord(parent_weight, 0, digest), kept)
        if stored is None:
            return SealClaimResult(SealClaim.OURS)
        return SealClaimResult(SealClaim.PARTNER if stored.height == parent_weight else SealClaim.BEHIND, stored.vote)

    async def claimed_block(self) -> bytes | None:
        """Return the claimed block, if it was stored. Raises `VotesUnavailable`."""
        return await self._store.block()

    def close(self) -> None:
        """Close connections."""
        self._store.close()
