"""What the machine is told, and what it asks for.

Events are facts in the past tense or expired timers; effects are orders. The driver runs the effects of one `handle`
call in their order and one after the other: a `Remember` is on disk before the `Multicast` behind it leaves, so a
validator that is killed in between has promised nothing (consensus.md 2.10). Slow orders (`BuildProposal`,
`CheckProposal`, `ImportBlock`) come back later as events; the machine goes on answering messages meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from ophion.consensus.bft.memory import Memory
from ophion.consensus.bft.messages import BftMessage, Candidate, Proposal
from ophion.consensus.bft.timing import Timing
from ophion.primitives.types import Address, Hash32, Signature


@dataclass(frozen=True, slots=True)
class Head:
    """The block on which the next height builds."""

    number: int
    hash: Hash32
    timestamp: int
    builder: Address
    """Its coinbase, from which turns are counted."""


# --- events -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewHead:
    """The chain has a new head: by our own import, from a peer, or at start."""

    head: Head
    validators: tuple[Address, ...]
    """In force for the next block."""
    timing: Timing
    """For the next block; transitions may change it."""


@dataclass(frozen=True, slots=True)
class Received:
    """A peer has sent a message. `peer` is the validator address of the peer, not the author."""

    message: BftMessage
    peer: Address | None


@dataclass(frozen=True, slots=True)
class BlockTimer:
    """It is time for the next block."""

    height: int


@dataclass(frozen=True, slots=True)
class RoundTimer:
    """A round has lasted too long."""

    height: int
    round: int


@dataclass(frozen=True, slots=True)
class ProposalBuilt:
    """Answer to `BuildProposal`."""

    height: int
    round: int
    block: Candidate
    is_empty: bool
    """Whether it has no transactions: QBFT may wait longer with those (consensus.md 3.5)."""


@dataclass(frozen=True, slots=True)
class ProposalChecked:
    """Answer to `CheckProposal`; `problem` says in one sentence why the block is not acceptable."""

    height: int
    round: int
    digest: Hash32
    problem: str | None


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """A block could not be built or imported. Nothing follows: the round timer moves things on."""

    height: int
    round: int
    problem: str


@dataclass(frozen=True, slots=True)
class Connected:
    """A peer has connected that may be a validator; what it has missed is said again to it."""

    peer: Address


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection to a peer has ended."""

    peer: Address


@dataclass(frozen=True, slots=True)
class Suspended:
    """Consensus stops on this node (synchronising, or the operator said so) until the next `NewHead`."""


BftEvent: TypeAlias = (
    "NewHead | Received | BlockTimer | RoundTimer | ProposalBuilt | ProposalChecked | TaskFailed | Connected | "
    "Disconnected | Suspended"
)


# --- effects ------------------------------------------------------------------------------------


class TimerKind(Enum):
    """There is at most one timer of each kind; setting it again replaces it."""

    BLOCK = "block"
    ROUND = "round"


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Hand back `event` at wall time `at`, at once when that has passed."""

    kind: TimerKind
    at: float
    event: BlockTimer | RoundTimer


@dataclass(frozen=True, slots=True)
class CancelTimer:
    kind: TimerKind


@dataclass(frozen=True, slots=True)
class Remember:
    """Make this durable before anything behind it is done."""

    memory: Memory


@dataclass(frozen=True, slots=True)
class Multicast:
    """Send an own message to all validators of its height."""

    message: BftMessage


@dataclass(frozen=True, slots=True)
class Repeat:
    """Send an own message once more, to one validator."""

    message: BftMessage
    to: Address


@dataclass(frozen=True, slots=True)
class Relay:
    """Pass a foreign message on, byte for byte, to the validators that are not in `exclude`."""

    message: BftMessage
    exclude: tuple[Address | None, Address]


@dataclass(frozen=True, slots=True)
class BuildProposal:
    """Build a block on the head; answer with `ProposalBuilt` or `TaskFailed`."""

    parent: Hash32
    height: int
    round: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class CheckProposal:
    """Check the header by the light rules and execute the block; answer with `ProposalChecked`."""

    proposal: Proposal


@dataclass(frozen=True, slots=True)
class ImportBlock:
    """A quorum has committed: put the block on the chain. Success shows as `NewHead`, failure as `TaskFailed`."""

    block: Candidate
    """In the form of `round`, without seals."""
    round: int
    seals: tuple[Signature, ...]
    """In the order in which they arrived; at least a quorum, one per validator."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """A peer speaks of later heights: its chain has at least this block."""

    peer: Address | None
    height: int


BftEffect: TypeAlias = (
    "SetTimer | CancelTimer | Remember | Multicast | Repeat | Relay | BuildProposal | CheckProposal | ImportBlock | "
    "CatchUp"
)
