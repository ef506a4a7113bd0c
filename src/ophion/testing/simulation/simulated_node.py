"""A simulated node: its chain, its disk, and its state machine while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import TimerKind
from ophion.consensus.bft.messages import ProposedBlock
from ophion.consensus.bft.state_machine import BftStateMachine
from ophion.consensus.bft.validator_set import quorum_of
from ophion.consensus.validator_votes import LocalProposals, Tally
from ophion.primitives.types import Address, Hash32, Signature
from ophion.testing.simulation.fake_crypto import Content, stand_in_seal_author

if TYPE_CHECKING:
    from ophion.testing.simulation.byzantine import Liar


@dataclass(frozen=True)
class FinalBlock:
    """A block with its seals on a chain."""

    block: ProposedBlock
    round: int
    seals: tuple[Signature, ...]
    tally: Tally
    """Validators and votes after the block."""

    @staticmethod
    def of(
        block: ProposedBlock, round_number: int, seals: tuple[Signature, ...], before: Tally, epoch_length: int
    ) -> FinalBlock:
        """Return the block with the tally after the block; `before` is the tally after its parent."""
        vote = Content.decode(block.encoded).vote
        if block.height % epoch_length == 0:
            after = Tally.of(before.validators)
        else:
            after = before.apply(block.builder, vote) if vote is not None else before
        return FinalBlock(block, round_number, seals, after)

    @property
    def height(self) -> int:
        return self.block.height

    @property
    def hash(self) -> Hash32:
        return self.block.hash

    @property
    def builder(self) -> Address:
        return self.block.builder

    @cached_property
    def content(self) -> Content:
        return Content.decode(self.block.encoded)

    @property
    def parent(self) -> Hash32:
        return self.content.parent

    @property
    def timestamp(self) -> int:
        return self.content.timestamp

    @cached_property
    def sealers(self) -> tuple[Address | None, ...]:
        """Return the authors of the seals; None for a seal of another block or round."""
        return tuple(stand_in_seal_author(self.block.digest, seal) for seal in self.seals)

    def is_sealed_by(self, validators: tuple[Address, ...]) -> bool:
        """Return whether a quorum of distinct validators has sealed the block."""
        found = set(self.sealers)
        return len(found) == len(self.seals) and found <= set(validators) and len(found) >= quorum_of(len(validators))


class SimulatedMember:
    """One node of a simulated network."""

    __slots__ = (
        "address",
        "chain",
        "dies_after",
        "durable_votes",
        "group",
        "index",
        "liar",
        "machine",
        "proposals",
        "skew_s",
        "target",
        "timers",
    )

    def __init__(self, index: int, address: Address, genesis: FinalBlock) -> None:
        self.index = index
        self.address = address
        self.chain = [genesis]
        self.machine: BftStateMachine | None = None
        """The state machine; None while the node is down."""
        self.durable_votes: DurableVotes | None = None
        """Votes stored on disk."""
        self.liar: Liar | None = None
        self.proposals = LocalProposals()
        self.timers: dict[TimerKind, int] = {}
        """Number of the scheduled event for each kind of timer. Older events of the same kind are ignored."""
        self.group = 0
        self.skew_s = 0.0
        """Seconds by which the node's clock is ahead."""
        self.target = 0
        """The height to which the node synchronises."""
        self.dies_after: int | None = None
        """Number of effects that the node still runs before it crashes."""

    @property
    def name(self) -> str:
        """Name in traces: V0, V1, ..."""
        return f"V{self.index}"

    @property
    def head(self) -> FinalBlock:
        return self.chain[-1]

    @property
    def height(self) -> int:
        return len(self.chain) - 1
