"""Interfaces that the state machine needs from IBFT 2.0 or QBFT.

`ProtocolRules` validate decoded messages. `MessageFactory` creates this validator's own messages. A node implements
`MessageFactory` with real keys and blocks. The simulator implements it with fake keys and blocks.
"""

from __future__ import annotations

from typing import Protocol

from ophion.consensus.bft.messages import (
    Commit,
    Prepare,
    PreparedRound,
    Proposal,
    ProposedBlock,
    RoundChange,
)
from ophion.consensus.bft.round_change import Certificate
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Address, Hash32, Signature


class BlockForms(Protocol):
    """Sets the round in a block's extra data to the round in which the block is proposed."""

    def with_round(self, block: ProposedBlock, round_number: int) -> ProposedBlock:
        """Return the same block with another round in its extra data."""


class ProtocolRules(Protocol):
    """Validation rules of a protocol. All methods are pure; the checks raise `Unjustified`."""

    name: str
    proposer_prepares: bool
    """Whether the proposer also sends a prepare. Otherwise its proposal counts as its prepare."""
    starts_on_block_timer: bool
    """Whether round 0 begins when the block is due (QBFT). Otherwise it begins with the new head (IBFT 2.0)."""
    certifies_proposal: bool
    """Whether a proof of preparation contains the signed proposal."""

    def prepares_needed(self, validator_set: ValidatorSet) -> int:
        """Return the number of prepares that, together with the proposal, prove preparation."""

    def check_round_change(self, message: RoundChange, validator_set: ValidatorSet) -> None:
        """Check that a round change proves the prepared block that it claims, if any (consensus.md 2.9, 3.4)."""

    def check_proposal(self, proposal: Proposal, validator_set: ValidatorSet, forms: BlockForms) -> None:
        """Check author, certificate and choice of block. Does not check the content of the block."""


class MessageFactory(BlockForms, Protocol):
    """Creates the messages of one validator."""

    address: Address

    def proposal(self, height: int, round_number: int, block: ProposedBlock, why: Certificate | None) -> Proposal: ...
    def prepare(self, height: int, round_number: int, digest: Hash32) -> Prepare: ...
    def commit(self, height: int, round_number: int, digest: Hash32, seal_hash: Hash32) -> Commit: ...
    def round_change(self, height: int, round_number: int, prepared: PreparedRound | None) -> RoundChange: ...

    def seal_author(self, seal_hash: Hash32, seal: Signature) -> Address | None:
        """Return the signer of a commit seal, or None if the signature is invalid."""
