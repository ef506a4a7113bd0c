"""`DevEngine`: headers with the values that a test has set."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ophion.chainspec.forks import Milestone
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.engine import BlockPreferences, HeaderReader, Tip
from ophion.consensus.pow import PowEngine
from ophion.native.crypto import keccak256
from ophion.primitives.block import HashedHeader, Header
from ophion.primitives.types import Address, Hash32


class NextHeader(Struct):
    """Values that a test has set; None leaves a field to the protocol rules."""

    base_fee: int | None = None
    """For the next block only."""
    prev_randao: Hash32 | None = None
    """For the next block only."""
    gas_limit: int | None = None
    """For all blocks from now on."""
    blob_base_excess: int | None = None


class DevEngine(PowEngine):
    """Engine of a development network without peers: every block is this node's own.

    `is_merged` makes blocks as after the merge: no reward, no difficulty.
    """

    def __init__(self, spec: ChainSpec, equal_timestamps: bool, is_merged: bool) -> None:
        super().__init__(spec, verifies_work=False, equal_timestamps=equal_timestamps)
        self.next = NextHeader()
        self.branch = 0
        """Differs after each reorganisation of a test, so that the new blocks differ from the old ones."""
        self._is_merged = is_merged
        self._dev_spec = spec

    def check_genesis(self, header: Header) -> None:
        """Accept any genesis."""

    def verify(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
        """Accept every header: all are this node's own."""

    def rewards(self, header: HashedHeader, ommers: object) -> list[tuple[Address, int]]:
        """No rewards after the merge."""
        return [] if self._is_merged else super().rewards(header, ())

    def prefers(self, tip: Tip, head: Tip, chain: HeaderReader) -> bool:
        """Prefer the longer chain, since blocks may have no difficulty."""
        return tip.header.number > head.header.number

    def prepare(self, parent: HashedHeader, wishes: BlockPreferences, chain: HeaderReader) -> Header:
        """The header by the protocol rules, with the values that a test has set."""
        header = super().prepare(parent, wishes, chain)
        asked = self.next
        changes: dict[str, object] = {}
        if self._dev_spec.fork_of(header).has(Milestone.SHANGHAI):
            changes["mix_hash"] = asked.prev_randao or keccak256(parent.hash + self.branch.to_bytes(4, "big"))
        if self._is_merged and parent.number == 0:
            # The first block has the base fee of the genesis, as in other development nodes.
            changes["base_fee_per_gas"] = parent.header.base_fee_per_gas
        if asked.base_fee is not None and header.base_fee_per_gas is not None:
            changes["base_fee_per_gas"] = asked.base_fee
        if asked.gas_limit is not None:
            changes["gas_limit"] = asked.gas_limit
        if asked.blob_base_excess is not None and header.excess_blob_gas is not None:
            changes["excess_blob_gas"] = asked.blob_base_excess
        if self._is_merged:
            changes["difficulty"] = 0
        return replace(header, **changes) if changes else header

    def on_block(self) -> None:
        """Clear the values that were for the next block only."""
        self.next.base_fee = self.next.prev_randao = self.next.blob_base_excess = None
