"""`DevEngine`: makes headers with the values that a test has set."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ophion.chainspec.forks import Milestone
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.engine import BlockPreferences, HeaderReader, Tip
from ophion.consensus.pow import PowEngine
from ophion.native.crypto import keccak256
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address, Hash32


class NextHeader(Struct):
    """Header values that a test has set. With None, the protocol rules choose the value."""

    base_fee: int | None = None
    """Base fee of the next block; later blocks follow the protocol rules."""
    prev_randao: Hash32 | None = None
    """Value of PREVRANDAO in the next block only."""
    gas_limit: int | None = None
    """Gas limit of all blocks from the next block on."""
    blob_base_excess: int | None = None


class DevEngine(PowEngine):
    """Engine of a development network without peers, whose node makes every block itself.

    With `is_merged`, blocks have no reward and no difficulty, like blocks after the merge.
    """

    def __init__(self, spec: ChainSpec, equal_timestamps: bool, is_merged: bool) -> None:
        super().__init__(spec, verifies_work=False, equal_timestamps=equal_timestamps)
        self.next = NextHeader()
        self.branch = 0
        """Number of the branch. It changes with each reorganisation, so that the new blocks have other hashes."""
        self._is_merged = is_merged
        self._dev_spec = spec

    def check_genesis(self, header: Header) -> None:
        """Accept any genesis."""

    def verify(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
        """Accept every header, because this node made it."""

    def rewards(self, header: HashedHeader, ommers: object) -> list[tuple[Address, int]]:
        """Return no rewards after the merge. Before the merge, return the ethash rewards."""
        return [] if self._is_merged else super().rewards(header, ())

    def prefers(self, tip: Tip, head: Tip, chain: HeaderReader) -> bool:
        """Prefer the longer chain. Difficulty does not decide, because blocks may have no difficulty."""
        return tip.header.number > head.header.number

    def prepare(self, parent: HashedHeader, preferences: BlockPreferences, chain: HeaderReader) -> Header:
        """Make the header by the protocol rules, then apply the values that a test has set."""
        header = super().prepare(parent, preferences, chain)
        asked = self.next
        changes: dict[str, object] = {}
        if self._dev_spec.fork_of(header).has(Milestone.SHANGHAI):
            changes["mix_hash"] = asked.prev_randao or self.randomness(parent.hash)
        if self._is_merged and parent.number == 0:
            # Block 1 repeats the base fee of the genesis block, because other development nodes do the same.
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

    def repeated(self, draft: Header, parent: HashedHeader, timestamp: int) -> Header | None:
        """Copy `draft` to the block after `parent`, with new number, time and hashes. Computes no other field.

        Returns None if another field may differ: at a fork, or if the difficulty depends on the time. The caller has
        checked that gas limit and prices do not change.
        """
        timestamp = max(timestamp, parent.timestamp + self._prepared_distance_s)
        following = replace(draft, parent_hash=parent.hash, number=parent.number + 1, timestamp=timestamp)
        fork = self._dev_spec.fork_of(following)
        if fork is not self._dev_spec.fork_of(draft) or not (self._is_merged or self._fixed_difficulty):
            return None
        if fork.has(Milestone.SHANGHAI):
            following = replace(following, mix_hash=self.randomness(parent.hash))
        return following

    def step(self, interval: int) -> int:
        """Return the seconds between empty blocks: `interval`, or the minimum distance of timestamps if `interval` is
        lower.
        """
        return max(interval, self._prepared_distance_s)

    def is_one_fork(self, first: Header, count: int, step: int) -> bool:
        """Whether one fork covers `count` blocks from `first` on, `step` seconds apart."""
        last = replace(first, number=first.number + count - 1, timestamp=first.timestamp + (count - 1) * step)
        return self._dev_spec.fork_of(last) is self._dev_spec.fork_of(first)

    def randomness(self, parent_hash: Hash32) -> Hash32:
        """Return the `prevRandao` of the block whose parent has this hash."""
        return keccak256(parent_hash + self.branch.to_bytes(4, "big"))

    def randomness_branch(self, header: Header) -> int | None:
        """Return the number that `randomness` hashes; None before `prevRandao` exists."""
        return self.branch if self._dev_spec.fork_of(header).has(Milestone.SHANGHAI) else None

    def on_block(self) -> None:
        """Clear the values that apply to the next block only."""
        self.next.base_fee = self.next.prev_randao = self.next.blob_base_excess = None
