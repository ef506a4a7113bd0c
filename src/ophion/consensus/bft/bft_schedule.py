"""`BftSchedule`: consensus parameters by block, with transitions and the move to QBFT (consensus.md 2.13, 3.7).

A transition inherits values from the previous transition. Its `block` is a number, or a timestamp if the nearest
earlier fork starts at a time (consensus.md 5.5).
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ophion.chainspec.consensus_parameters import BftParameters, BftTransition, EngineKind, ValidatorSelection
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.message_factory import BftProtocol
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.primitives.types import Address


class BlockSettings(Struct, frozen=True):
    """Consensus settings that apply to one block."""

    period_s: int
    period_ms: int
    """Block period in milliseconds. A value above zero replaces the period in seconds."""
    empty_period_s: int
    reward_wei: int
    beneficiary: Address | None
    """Address that earns fees and reward instead of the proposer."""
    contract: Address | None
    """Contract that lists the validators of this block; None if validators are voted on in headers."""

    @property
    def least_distance_s(self) -> int:
        """Minimum seconds between the timestamps of parent and block. With a period below a second, timestamps may be
        equal.
        """
        if self.period_ms > 0:
            return self.period_ms // 1000
        return self.period_s

    @property
    def target_period_s(self) -> float:
        """Target number of seconds between blocks."""
        return self.period_ms / 1000 if self.period_ms > 0 else float(self.period_s)


class ProtocolEra(Struct, frozen=True):
    """An era: a range of blocks with one protocol."""

    first: int
    """First block of the era. Epochs count from the block before the era."""
    protocol: BftProtocol
    parameters: BftParameters

    def is_epoch(self, number: int) -> bool:
        """Whether votes are reset at this block."""
        start = max(self.first - 1, 0)
        return number >= start and (number - start) % self.parameters.epoch_length == 0


class BftSchedule:
    """Consensus parameters by block number, for one IBFT 2.0 or QBFT network."""

    def __init__(self, spec: ChainSpec) -> None:
        self._spec = spec
        self._eras = _eras(spec)
        """Eras in ascending order. The first era begins at block 0, or after the last Clique block."""
        # a node calls `era` a dozen times per block, so skip the search if there is one era, as in most networks
        self._only_era = self._eras[0] if len(self._eras) == 1 else None
        self._first_settings = {era.first: _first_settings(era.parameters) for era in self._eras}

    @property
    def first(self) -> int:
        """First BFT block. The number is above 0 on a chain that began with Clique."""
        return self._eras[0].first

    @property
    def protocols(self) -> tuple[BftProtocol, ...]:
        """BFT protocols of the whole chain, in the order of their blocks."""
        return tuple(era.protocol for era in self._eras)

    def era(self, number: int) -> ProtocolEra:
        """Return the era of a block."""
        if self._only_era is not None:
            return self._only_era
        return next(era for era in reversed(self._eras) if number >= era.first)

    def era_after(self, number: int) -> ProtocolEra:
        """Return the era of the block after `number`.

        The votes in block `number` already count by the rules of that era.
        """
        return self.era(number + 1)

    def settings(self, number: int, timestamp: int) -> BlockSettings:
        """Return the settings of a block by number and timestamp."""
        era = self.era(number)
        parameters, settings = era.parameters, self._first_settings[era.first]
        for transition in parameters.transitions:
            if self._is_in_force(transition, number, timestamp):
                settings = _changed(settings, transition)
        return settings

    def override(self, number: int, timestamp: int, parent_timestamp: int) -> tuple[Address, ...] | None:
        """Return the validators that a transition sets at exactly this block, if any."""
        for transition in reversed(self.era(number).parameters.transitions):
            if (
                transition.validators is not None
                and self._is_in_force(transition, number, timestamp)
                and (number == 1 or not self._is_in_force(transition, number - 1, parent_timestamp))
            ):
                return transition.validators
        return None

    def next_timestamp(self, number: int, timestamp: int) -> int:
        """Return the earliest timestamp of the next block. Takes transitions by timestamp into account."""
        return timestamp + self.settings(number + 1, timestamp).least_distance_s

    def _is_in_force(self, transition: BftTransition, number: int, timestamp: int) -> bool:
        value = transition.block
        return (timestamp if self._spec.forks.counts_time(value) else number) >= value


def _first_settings(parameters: BftParameters) -> BlockSettings:
    """Return the settings before any transition."""
    return BlockSettings(
        parameters.block_period_s,
        parameters.block_period_ms,
        parameters.empty_block_period_s,
        parameters.block_reward,
        parameters.mining_beneficiary,
        parameters.validator_contract,
    )


def _eras(spec: ChainSpec) -> tuple[ProtocolEra, ...]:
    ibft2, qbft = spec.ibft2, spec.qbft
    if spec.engine is EngineKind.IBFT2 and ibft2 is not None:
        first = ProtocolEra(0, Ibft2(), ibft2)
        if qbft is not None and qbft.start_block > 0:
            return (first, ProtocolEra(qbft.start_block, Qbft(), qbft))
        return (first,)
    if spec.migrates_from_clique and qbft is not None:
        return (ProtocolEra(qbft.start_block, Qbft(), qbft),)
    return (ProtocolEra(0, Qbft(), qbft if qbft is not None else BftParameters()),)


def _changed(settings: BlockSettings, transition: BftTransition) -> BlockSettings:
    """Return the settings after a transition. Values that the transition does not set are inherited."""
    if transition.block_period_s is not None:
        settings = replace(settings, period_s=transition.block_period_s)
    if transition.block_period_ms is not None:
        settings = replace(settings, period_ms=transition.block_period_ms)
    if transition.empty_block_period_s is not None:
        settings = replace(settings, empty_period_s=transition.empty_block_period_s)
    if transition.block_reward is not None:
        settings = replace(settings, reward_wei=transition.block_reward)
    if transition.sets_mining_beneficiary:
        settings = replace(settings, beneficiary=transition.mining_beneficiary)
    if transition.validator_contract is not None:
        settings = replace(settings, contract=transition.validator_contract)
    if transition.validator_selection is ValidatorSelection.BLOCK_HEADER:
        settings = replace(settings, contract=None)
    return settings
