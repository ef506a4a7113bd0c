"""`ExecutedCandidates`: blocks that wait for their seals, with their execution results."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ophion.chain.block_builder import BuiltBlock
from ophion.consensus.bft.messages import ProposedBlock
from ophion.consensus.bft.signed_parts import MAX_BLOCK_ITEMS
from ophion.native.executor import Execution
from ophion.native.transactions import Body
from ophion.primitives import rlp
from ophion.primitives.types import Hash32

_MAX_CANDIDATES: Final = 8
"""Limit of candidates per height. An evicted block is executed again if it is decided."""


class ExecutedCandidate(Struct, frozen=True):
    """A block that this node has built or checked."""

    height: int
    body: Body
    execution: Execution
    built: BuiltBlock | None
    """The built block. None if the block was only checked."""
    started_at: float


class ExecutedCandidates:
    """The candidate blocks that consensus may still decide."""

    def __init__(self) -> None:
        self._blocks: dict[Hash32, ExecutedCandidate] = {}

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, block_hash: Hash32, kept: ExecutedCandidate) -> None:
        """Store a candidate. The number of candidates is bounded, because a height may have any number of rounds."""
        self._blocks[block_hash] = kept
        if len(self._blocks) > _MAX_CANDIDATES:
            del self._blocks[next(iter(self._blocks))]

    def get(self, block_hash: Hash32) -> ExecutedCandidate | None:
        return self._blocks.get(block_hash)

    def __contains__(self, block: ProposedBlock) -> bool:
        """Whether this block was built or checked already. A valid block stays valid in later rounds.

        The hash covers the header without round and seals. The body is compared too, because a malicious peer may send
        a different body with the same header.
        """
        kept = self._blocks.get(block.hash)
        return (
            kept is not None
            and kept.body.encode_block(rlp.split_list(block.encoded, MAX_BLOCK_ITEMS)[0]) == block.encoded
        )

    def forget_decided(self, height: int) -> None:
        """Drop the candidates up to a decided height."""
        self._blocks = {hash: kept for hash, kept in self._blocks.items() if kept.height > height}

    def clear(self) -> None:
        self._blocks.clear()
