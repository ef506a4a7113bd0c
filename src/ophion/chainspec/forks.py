"""Forks of Ethereum from Frontier to Osaka, and their activation.

A `Milestone` is a change of the rules. A `ForkSchedule` maps milestones to their block or time on a network. A later
milestone implies all earlier milestones, so the active milestone is the latest that has begun. Glacier forks only
change the difficulty bomb, and BPO forks only change blob parameters. For these forks, the EVM uses the rules of the
previous fork.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from typing import Final

from msgspec import Struct, field


class Milestone(IntEnum):
    """All changes of the rules, in order of activation."""

    FRONTIER = 0
    HOMESTEAD = 1
    TANGERINE = 2
    SPURIOUS = 3
    BYZANTIUM = 4
    CONSTANTINOPLE = 5
    PETERSBURG = 6
    ISTANBUL = 7
    MUIR_GLACIER = 8
    BERLIN = 9
    LONDON = 10
    ARROW_GLACIER = 11
    GRAY_GLACIER = 12
    PARIS = 13
    SHANGHAI = 14
    CANCUN = 15
    PRAGUE = 16
    OSAKA = 17
    BPO1 = 18
    BPO2 = 19
    BPO3 = 20
    BPO4 = 21
    BPO5 = 22


_EVM_RULES: Final = {
    Milestone.MUIR_GLACIER: "istanbul",
    Milestone.ARROW_GLACIER: "london",
    Milestone.GRAY_GLACIER: "london",
    Milestone.BPO1: "osaka",
    Milestone.BPO2: "osaka",
    Milestone.BPO3: "osaka",
    Milestone.BPO4: "osaka",
    Milestone.BPO5: "osaka",
}
# this table gives the delay of the difficulty bomb in blocks (EIP-649, 1234, 2384, 3554, 4345, 5133)
_BOMB_DELAYS: Final = {
    Milestone.BYZANTIUM: 3_000_000,
    Milestone.CONSTANTINOPLE: 5_000_000,
    Milestone.MUIR_GLACIER: 9_000_000,
    Milestone.LONDON: 9_700_000,
    Milestone.ARROW_GLACIER: 10_700_000,
    Milestone.GRAY_GLACIER: 11_400_000,
}


class BlobParameters(Struct, frozen=True):
    """Target and maximum of blobs per block, and the update rate of the blob price (EIP-4844, EIP-7840)."""

    target: int
    max: int
    fee_fraction: int


DEFAULT_BLOB_SCHEDULE: Final = {
    Milestone.CANCUN: BlobParameters(3, 6, 3_338_477),
    Milestone.PRAGUE: BlobParameters(6, 9, 5_007_716),
    Milestone.OSAKA: BlobParameters(6, 9, 5_007_716),
}


class Fork(Struct, frozen=True):
    """Rules that apply to one block."""

    milestone: Milestone
    name: str
    """Name that the EVM uses for these rules (`BlockEnv.fork`)."""
    bomb_delay: int
    """Delay of the difficulty bomb in blocks."""
    blobs: BlobParameters | None
    """Blob parameters of the fork; None before Cancun."""

    def has(self, milestone: Milestone) -> bool:
        """Whether a milestone is active under these rules."""
        return self.milestone >= milestone


def evm_rules(milestone: Milestone) -> str:
    """Return the name that the EVM uses for a milestone."""
    return _EVM_RULES.get(milestone, milestone.name.lower())


class ForkSchedule(Struct, frozen=True, dict=True):
    """Activation block or time of each milestone. Milestones from Shanghai on activate by time."""

    blocks: dict[Milestone, int]
    times: dict[Milestone, int] = field(default_factory=dict)
    blob_schedule: dict[Milestone, BlobParameters] = field(default_factory=lambda: dict(DEFAULT_BLOB_SCHEDULE))

    @cached_property
    def _by_block(self) -> tuple[tuple[int, Milestone], ...]:
        return _latest_first(self.blocks)

    @cached_property
    def _by_time(self) -> tuple[tuple[int, Milestone], ...]:
        return _latest_first(self.times)

    @cached_property
    def _forks(self) -> dict[Milestone, Fork]:
        return {milestone: self._fork(milestone) for milestone in Milestone}

    def at(self, number: int, timestamp: int, merged: bool = False) -> Fork:
        """Return the rules of the block with this number and timestamp.

        `merged` states whether the block comes after the merge; number and time do not determine this.
        """
        for time, milestone in self._by_time:
            if timestamp >= time:
                return self._forks[milestone]
        if merged:
            return self._forks[Milestone.PARIS]
        for block, milestone in self._by_block:
            if number >= block:
                return self._forks[milestone]
        return self._forks[Milestone.FRONTIER]

    def counts_time(self, value: int) -> bool:
        """Whether the `block` of a transition is a timestamp: True if the nearest fork before `value` activates by
        time.
        """
        times = [time for time in self.times.values() if time <= value]
        blocks = [block for block in self.blocks.values() if block <= value]
        return bool(times) and max(times) >= max(blocks, default=0)

    def _fork(self, milestone: Milestone) -> Fork:
        blobs = None
        if milestone >= Milestone.CANCUN:
            blobs = self.blob_schedule[max(known for known in self.blob_schedule if known <= milestone)]
        begun = [delay for known, delay in _BOMB_DELAYS.items() if known <= milestone]
        return Fork(milestone, evm_rules(milestone), begun[-1] if begun else 0, blobs)


def _latest_first(begins: dict[Milestone, int]) -> tuple[tuple[int, Milestone], ...]:
    """Sort milestones latest first, because a search usually ends at the latest milestone."""
    return tuple((begins[milestone], milestone) for milestone in sorted(begins, reverse=True))
