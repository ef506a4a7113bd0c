"""What the machine needs from IBFT 2.0 or QBFT, in two halves.

`Rules` validate decoded messages. `MessageFactory` writes this validator's own messages and knows the forms of a block.
A node uses real keys and blocks in its `MessageFactory`; the simulator uses fake ones and keeps the real `Rules`, so
that what is proved in simulation is what runs.
"""

from __future__ import annotations

from typing import Protocol

from ophion.consensus.bft.messages import (
    Candidate,
    Commit,
    Prepare,
    PreparedRound,
    Proposal,
    RoundChange,
)
from ophion.consensus.bft.round_change import Certificate
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Address, Hash32, Signature


class BlockForms(Protocol):
    """The forms one block takes in different rounds."""

    def with_round(self, block: Candidate, round_number: int) -> Candidate:
        """The same block with another round in its extra data."""


class Rules(Protocol):
    """The judging half of a protocol. All methods are pure; the checks raise `Unjustified`."""

    name: str
    proposer_prepares: bool
    """Whether the proposer sends a prepare too, and a quorum of prepares is therefore a full one."""
    starts_on_block_timer: bool
    """Whether round 0 begins when the block is due (QBFT) instead of with the new head (IBFT 2.0)."""
    certifies_proposal: bool
    """Whether a proof of preparation repeats the signed proposal."""

    def prepares_needed(self, validator_set: ValidatorSet) -> int:
        """Prepares that prove preparation, together with the proposal."""

    def check_round_change(self, message: RoundChange, validator_set: ValidatorSet) -> None:
        """Its claim, if any, must be proved by what it carries (consensus.md 2.9, 3.4)."""

    def check_proposal(self, proposal: Proposal, validator_set: ValidatorSet, forms: BlockForms) -> None:
        """Author, certificate and choice of block must be right; the block itself is checked elsewhere."""


class MessageFactory(BlockForms, Protocol):
    """The writing half of a protocol, in the hand of one validator."""

    address: Address

    def proposal(self, height: int, round_number: int, block: Candidate, why: Certificate | None) -> Proposal: ...
    def prepare(self, height: int, round_number: int, digest: Hash32) -> Prepare: ...
    def commit(self, height: int, round_number: int, digest: Hash32, seal_hash: Hash32) -> Commit: ...
    def round_change(self, height: int, round_number: int, prepared: PreparedRound | None) -> RoundChange: ...

    def seal_author(self, seal_hash: Hash32, seal: Signature) -> Address | None:
        """Who made a commit seal; None when it is no signature at all."""
