"""Headers at and after the merge.

A network with a terminal total difficulty starts under another engine. The merge is the first block whose parent has
reached that difficulty. After the merge, headers carry no proof: their consensus fields are constants, and the last
valid imported block is the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ophion.chainspec.spec import ChainSpec
from ophion.consensus import header_rules as rules
from ophion.consensus.engine import BlockPreferences, Engine, Finality, HeaderReader, Tip
from ophion.consensus.header_template import unsealed_header
from ophion.errors import GenesisError, InvalidBlock, InvalidHeader, UnknownParent
from ophion.native.crypto import keccak256
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import ZERO_NONCE, Address, Hash32, Signature

FUTURE_LEAD_S: Final = 15


class MergeEngine:
    """Uses the pre-merge engine up to the terminal total difficulty, and constant header fields after the merge."""

    finality = Finality.HEAVIEST

    def __init__(self, spec: ChainSpec, before: Engine) -> None:
        if spec.terminal_total_difficulty is None:
            raise GenesisError("Invalid genesis block configuration, missing value for 'terminalTotalDifficulty'")
        self._spec = spec
        self._terminal = spec.terminal_total_difficulty
        self._before = before
        self.name = f"{before.name}+merge"

    def hashed(self, header: Header, encoded: bytes | None = None) -> HashedHeader:
        """Hash the whole header, before and after the merge."""
        return HashedHeader(header, keccak256(header.encode()))

    def author(self, header: HashedHeader) -> Address:
        """Return the coinbase after the merge. Before the merge, return the author by the pre-merge engine."""
        return header.header.coinbase if _is_merged(header.header) else self._before.author(header)

    def beneficiary(self, header: HashedHeader) -> Address:
        """Return the coinbase after the merge. Before the merge, return the beneficiary of the pre-merge engine."""
        return header.header.coinbase if _is_merged(header.header) else self._before.beneficiary(header)

    def check_genesis(self, header: Header) -> None:
        """Check the genesis header with the pre-merge engine, unless the genesis is already merged."""
        if header.difficulty < self._terminal:
            self._before.check_genesis(header)

    def verify(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
        """Check a header by the pre-merge or the post-merge rules, depending on the parent's total difficulty."""
        if not self._follows_merge(parent, chain):
            self._before.verify(header, parent, chain, now)
            return
        block, before = header.header, parent.header
        rules.check_parent(block, parent)
        rules.check_not_future(block, now, FUTURE_LEAD_S)
        if block.difficulty != 0:
            raise InvalidHeader("difficulty after the merge", block.difficulty, 0)
        if block.nonce != ZERO_NONCE:
            raise InvalidHeader("nonce after the merge", block.nonce, ZERO_NONCE)
        rules.check_no_ommers(block)
        rules.check_extra_data(block)
        rules.check_timestamp(block, before)
        rules.check_gas_used(block)
        rules.check_gas_limit(block, before, self._spec)
        fork = self._spec.fork_of(block)
        rules.check_tail(block, fork)
        rules.check_base_fee(block, before, self._spec)
        rules.check_blobs(block, before, fork)

    def look_ahead(self, headers: Sequence[HashedHeader]) -> None:
        """Do nothing, because headers after the merge have no seals."""

    def unsealed(self, headers: Sequence[HashedHeader]) -> list[HashedHeader]:
        """Return no header, because a header with another seal has another hash."""
        return []

    def verify_ommers(self, header: HashedHeader, ommers: Sequence[Header], chain: HeaderReader) -> None:
        """Check that blocks after the merge have no ommers."""
        if not _is_merged(header.header):
            self._before.verify_ommers(header, ommers, chain)
        elif ommers:
            raise InvalidBlock("number of ommers after the merge", len(ommers), 0)

    def rewards(self, header: HashedHeader, ommers: Sequence[Header]) -> list[tuple[Address, int]]:
        """Return no rewards after the merge. Before the merge, return the rewards of the pre-merge engine."""
        return [] if _is_merged(header.header) else self._before.rewards(header, ommers)

    def prefers(self, tip: Tip, head: Tip, chain: HeaderReader) -> bool:
        """Prefer the last imported block after the merge. An unmerged branch never replaces a merged head."""
        if _is_merged(tip.header.header):
            return True
        if _is_merged(head.header.header):
            return False
        return self._before.prefers(tip, head, chain)

    def prepare(self, parent: HashedHeader, preferences: BlockPreferences, chain: HeaderReader) -> Header:
        """Return the draft header of a new block. After the merge, a header needs no seal."""
        if not self._follows_merge(parent, chain):
            return self._before.prepare(parent, preferences, chain)
        timestamp = max(preferences.timestamp, parent.timestamp + 1)
        return unsealed_header(parent, replace(preferences, timestamp=timestamp), self._spec, merged=True)

    def signing_hash(self, header: Header) -> Hash32:
        """Return the signing hash of the pre-merge engine. Headers after the merge are not signed."""
        return self._before.signing_hash(header)

    def attach(self, header: Header, seals: Sequence[Signature]) -> Header:
        """Return the header with seals of the pre-merge engine. Headers after the merge have no seals."""
        return header if _is_merged(header) else self._before.attach(header, seals)

    def members(self, after: HashedHeader, chain: HeaderReader) -> tuple[Address, ...]:
        """Return the block producers of the pre-merge engine, or an empty tuple after the merge."""
        return () if _is_merged(after.header) else self._before.members(after, chain)

    def checkpoint(self, header: HashedHeader, chain: HeaderReader) -> bytes | None:
        """Return the checkpoint of the pre-merge engine, or None after the merge."""
        return None if _is_merged(header.header) else self._before.checkpoint(header, chain)

    def _follows_merge(self, parent: HashedHeader, chain: HeaderReader) -> bool:
        if parent.number > 0 and _is_merged(parent.header):
            return True
        total = chain.total_difficulty(parent.hash)
        if total is None:
            raise UnknownParent(parent.number + 1, parent.hash, parent.number)
        return total >= self._terminal


def _is_merged(header: Header) -> bool:
    # only a header after the merge has difficulty zero, because every consensus engine before the merge has a higher
    # minimum difficulty
    return header.difficulty == 0
