"""Events and effects of the BFT state machine.

Events report facts or expired timers. Effects are commands for the driver, which runs the effects of one `handle` call
in order. So votes are on disk before the message with the vote is sent: a validator killed between `StoreVotes` and
`Multicast` has sent no vote (consensus.md 2.10). Slow effects (`BuildProposal`, `CheckProposal`, `ImportBlock`) finish
with an event. The state machine handles messages until this event arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.messages import BftMessage, PreparedRound, Proposal, ProposedBlock
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.vote_record import VoteRecord
from ophion.primitives.types import Address, Hash32, Signature


class Head(Struct, frozen=True):
    """The block on which the next height builds."""

    number: int
    hash: Hash32
    timestamp: int
    builder: Address
    """Coinbase of the block, which determines the next proposer."""


# --- events -------------------------------------------------------------------------------------


class NewHead(Struct, frozen=True):
    """The chain has a new head, which this node imported, received from a peer, or found at start."""

    head: Head
    validators: tuple[Address, ...]
    """Validators of the next block."""
    timing: RoundTiming
    """Periods and timeouts of the next block. Transitions may change the values."""
    begins_at: float = 0.0
    """Wall time before which this validator must not sign at the next height, because peers report a higher head. A
    later event with the same head and an earlier time shortens the wait.
    """
    is_provisional: bool = False
    """Whether another block may replace this head at the same number. Only the last Clique block of a migration is
    provisional.
    """


class MessageReceived(Struct, frozen=True):
    """A peer has sent a message. `peer` is the validator address of the sender, which may differ from the author."""

    message: BftMessage
    peer: Address | None


class BlockTimer(Struct, frozen=True):
    """The next block is due."""

    height: int
    is_pool_empty: bool = False
    """Whether the pool of this node is empty. In that case QBFT may delay round 0 (consensus.md 3.5)."""


class RoundTimer(Struct, frozen=True):
    """A round has timed out."""

    height: int
    round: int


class ProposalBuilt(Struct, frozen=True):
    """Result of `BuildProposal`."""

    height: int
    round: int
    block: ProposedBlock
    is_empty: bool
    """Whether the block has no transactions. QBFT may delay such blocks (consensus.md 3.5)."""


class ProposalChecked(Struct, frozen=True):
    """Result of `CheckProposal`. `problem` explains in one sentence why the block is invalid."""

    height: int
    round: int
    digest: Hash32
    problem: str | None
    is_body_wrong: bool = False
    """Whether body and header do not match. Any sender can replace the body, because only the header is signed."""


class TaskFailed(Struct, frozen=True):
    """The node could not build or import a block. The round timer starts the next round."""

    height: int
    round: int
    problem: str


class VoteStored(Struct, frozen=True):
    """Result of `CastVote`: the message is signed, its votes are stored, and the message may be sent."""

    order: CastVote
    message: BftMessage
    votes: DurableVotes


class VoteRefused(Struct, frozen=True):
    """Result of `CastVote`: another node with the same key has stored a vote that excludes this message."""

    order: CastVote
    stored: VoteRecord
    proof: PreparedRound | None = None
    """The latest proof of preparation in the shared vote store, if this node lacks the proof that the record `stored`
    names.
    """


class Connected(Struct, frozen=True):
    """A peer that may be a validator has connected and must receive the messages that it missed."""

    peer: Address


class Disconnected(Struct, frozen=True):
    """The connection to a peer has ended."""

    peer: Address


class Suspended(Struct, frozen=True):
    """Consensus stops until the next `NewHead`, because the node synchronises or the operator stopped consensus."""


BftEvent: TypeAlias = (
    "NewHead | MessageReceived | BlockTimer | RoundTimer | ProposalBuilt | ProposalChecked | TaskFailed | VoteStored | "
    "VoteRefused | Connected | Disconnected | Suspended"
)


# --- effects ------------------------------------------------------------------------------------


class TimerKind(Enum):
    """Kinds of timers. Setting a timer replaces the running timer of the same kind."""

    BLOCK = "block"
    ROUND = "round"


class SetTimer(Struct, frozen=True):
    """Return `event` to the state machine at wall time `at`, or immediately if `at` is in the past."""

    kind: TimerKind
    at: float
    event: BlockTimer | RoundTimer


class CancelTimer(Struct, frozen=True):
    kind: TimerKind


class StoreVotes(Struct, frozen=True):
    """Store these votes on disk before the next effect runs."""

    durable_votes: DurableVotes


class CastVote(Struct, frozen=True, eq=False):
    """Sign a message and store its votes. Finishes with `VoteStored` or `VoteRefused`.

    This effect replaces `StoreVotes` and `Multicast` if signing takes long or if several nodes share the vote store. If
    the round has ended, the driver may drop the effect without an event.
    """

    height: int
    round: int
    sign: Callable[[], BftMessage]
    """Creates the signed message. The driver may call this function in another thread."""
    votes: Callable[[BftMessage], DurableVotes]
    """Returns the votes that the driver stores before it sends the message."""
    then: Callable[[BftMessage], None]
    """Counts the message in the vote tally of this validator. The state machine calls this function after
    `VoteStored`.
    """


class Multicast(Struct, frozen=True):
    """Send a message of this validator to all validators of the message's height."""

    message: BftMessage


class ResendMessage(Struct, frozen=True):
    """Send a message of this validator again, to one validator that may have missed it."""

    message: BftMessage
    to: Address


class RelayMessage(Struct, frozen=True):
    """Relay a received message, byte for byte, to the validators that are not in `exclude`."""

    message: BftMessage
    exclude: tuple[Address | None, Address]


class BuildProposal(Struct, frozen=True):
    """Build a block on the head. Finishes with `ProposalBuilt` or `TaskFailed`."""

    parent: Hash32
    height: int
    round: int
    timestamp: int


class CheckProposal(Struct, frozen=True):
    """Compare the body with the header, check the header by the light rules and execute the block.

    Finishes with `ProposalChecked`.
    """

    proposal: Proposal


class ImportBlock(Struct, frozen=True):
    """Import a block that a quorum has committed. Finishes with `NewHead` or `TaskFailed`."""

    block: ProposedBlock
    """The block without seals, with `round` in its extra data."""
    round: int
    seals: tuple[Signature, ...]
    """At least a quorum of commit seals, one per validator, in order of arrival."""


class CatchUp(Struct, frozen=True):
    """Synchronise with a peer whose messages of later heights show that the peer has at least this block."""

    peer: Address | None
    height: int


BftEffect: TypeAlias = (
    "SetTimer | CancelTimer | StoreVotes | CastVote | Multicast | ResendMessage | RelayMessage | BuildProposal | "
    "CheckProposal | ImportBlock | CatchUp"
)
