"""Explains what consensus waits for and what prevents progress.

The status is computed from the state machine without waiting. Callers may pass the connected peers for a more exact
status.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import Enum

from msgspec import Struct
from msgspec.structs import replace

from ophion.consensus.bft.height import Height
from ophion.consensus.bft.round import NOT_STARTED
from ophion.consensus.bft.state_machine import BftStateMachine
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Address, Hash32


class Phase(Enum):
    """Progress of the current round."""

    STOPPED = "stopped"
    FOLLOWING = "following"
    """This node is not a validator of this height."""
    LOST_STATE = "recovering from lost votes"
    """This node lost its votes and skips heights at which it may have voted."""
    WAITING_FOR_BLOCKS = "waiting for blocks of peers"
    """Peers report a higher head, so this node signs nothing for up to one timeout."""
    WAITING_FOR_BLOCK_TIME = "waiting for block time"
    WAITING_FOR_ROUND_CHANGES = "waiting for round changes"
    """This node is in a later round that a quorum has not requested yet."""
    WAITING_FOR_PROPOSAL = "waiting for proposal"
    PREPARING = "preparing"
    COMMITTING = "committing"
    DECIDED = "decided"
    """The block is being imported."""


class VoteTally(Struct, frozen=True):
    """Validators that have voted in the current round, and validators that have not."""

    needed: int
    arrived: tuple[Address, ...] = ()
    missing: tuple[Address, ...] = ()


class ValidatorView(Struct, frozen=True):
    """What this node knows about another validator."""

    address: Address
    is_connected: bool
    client: str | None
    """Client name of the validator, if it is connected."""
    message_s_ago: float | None
    """Seconds since the validator's last new message, direct or relayed; None if no message has arrived."""
    is_passed_over: bool
    """Whether rounds of this validator are skipped."""
    clock_ahead_s: float | None
    """Seconds by which the validator's clock was ahead of this node's clock at its last proposal; None without a
    proposal.
    """

    def as_object(self) -> dict[str, object]:
        """Return the fields as plain values for JSON."""
        return {
            "address": _hex(self.address),
            "isConnected": self.is_connected,
            "client": self.client,
            "lastHeardSecondsAgo": _rounded(self.message_s_ago),
            "isPassedOver": self.is_passed_over,
            "clockAheadSeconds": _rounded(self.clock_ahead_s),
        }


def member_views(
    machine: BftStateMachine,
    validators: Iterable[Address],
    connected: Collection[Address],
    client_of: Callable[[Address], str | None],
    lead_of: Callable[[Address], float | None],
    now: float,
) -> Iterator[ValidatorView]:
    """Yield what this node knows about each of the other validators."""
    liveness, validator_set, me = machine.liveness, machine.validator_set, machine.address
    absent = frozenset() if validator_set is None else liveness.absent(validator_set, me)
    for address in validators:
        if address != me:
            received_at = liveness.received_at.get(address)
            yield ValidatorView(
                address,
                address in connected,
                client_of(address),
                None if received_at is None else now - received_at,
                address in absent,
                lead_of(address),
            )


class BftStatus(Struct, frozen=True):
    """A snapshot of the state machine's status."""

    protocol: str
    phase: Phase
    height: int | None = None
    """The height being decided, which is one above the head."""
    round: int | None = None
    """Current round; None before the first round has begun."""
    validators: tuple[Address, ...] = ()
    quorum: int = 0
    proposer: Address | None = None
    """Proposer of the current round."""
    proposal: Hash32 | None = None
    """Hash of the block that was proposed and accepted."""
    prepares: VoteTally | None = None
    commits: VoteTally | None = None
    round_changes: VoteTally | None = None
    """Validators that requested the current round. During round 0, validators that requested round 1."""
    silent: tuple[Address, ...] = ()
    """Validators that have sent no message at this height."""
    disconnected: tuple[Address, ...] | None = None
    """Validators that are not connected; None if the connected peers are unknown."""
    prepared_round: int | None = None
    """Latest round in which a quorum prepared a block."""
    round_expires_in_s: float | None = None
    block_due_in_s: float | None = None
    is_quorum_reachable: bool | None = None
    """Whether enough validators are connected for a quorum; None if the connected peers are unknown."""
    explanation: tuple[str, ...] = ()
    """Reasons for a lack of progress, one sentence each, most important first."""
    notes: tuple[str, ...] = ()
    """Recently refused messages and blocks, with reasons."""
    members: tuple[ValidatorView, ...] = ()
    """The other validators; empty if the connected peers are unknown."""

    def as_object(self) -> dict[str, object]:
        """Return the status as plain values with hexadecimal addresses."""

        def listed(addresses: Iterable[Address]) -> list[str]:
            return [_hex(address) for address in addresses]

        def tally(found: VoteTally | None) -> dict[str, object] | None:
            if found is None:
                return None
            return {"needed": found.needed, "arrived": listed(found.arrived), "missing": listed(found.missing)}

        return {
            "protocol": self.protocol,
            "phase": self.phase.value,
            "height": self.height,
            "round": self.round,
            "validators": listed(self.validators),
            "quorum": self.quorum,
            "proposer": _hex(self.proposer) if self.proposer is not None else None,
            "proposal": _hex(self.proposal) if self.proposal is not None else None,
            "prepares": tally(self.prepares),
            "commits": tally(self.commits),
            "roundChanges": tally(self.round_changes),
            "silent": listed(self.silent),
            "disconnected": listed(self.disconnected) if self.disconnected is not None else None,
            "preparedRound": self.prepared_round,
            "roundExpiresInSeconds": self.round_expires_in_s,
            "blockDueInSeconds": self.block_due_in_s,
            "quorumReachable": self.is_quorum_reachable,
            "explanation": list(self.explanation),
            "notes": list(self.notes),
            "members": [member.as_object() for member in self.members],
        }


def status_of(machine: BftStateMachine, now: float, connected: Collection[Address] | None = None) -> BftStatus:
    """Return the status of a machine. `connected` holds the validator addresses of connected peers, if known."""
    name = machine.rules.name
    validator_set = machine.validator_set
    if not machine.is_running or validator_set is None:
        why = "Consensus is not running here: the node is synchronising, was stopped, or has no head yet."
        return BftStatus(name, Phase.STOPPED, explanation=(why,))
    height = machine.height
    if height is None:
        phase = Phase.FOLLOWING
        number, me = validator_set.height, f"0x{machine.address.hex()}"
        why = f"This node ({me}) is not a validator of block {number}; it only follows."
        if machine.is_held:
            phase = Phase.WAITING_FOR_BLOCKS
            why = (
                f"Peers report a higher block than {number - 1}, or none has connected yet. This validator "
                f"({me}) signs nothing until it has their blocks or one timeout has passed."
            )
        elif machine.skips_height:
            phase = Phase.LOST_STATE
            why = (
                f"This validator (0x{machine.address.hex()}) has no record of its earlier votes. It "
                "votes again after the first block made since its start, or when the others make no progress."
            )
        return BftStatus(
            name,
            phase,
            validator_set.height,
            validators=validator_set.validators,
            quorum=validator_set.quorum,
            disconnected=None if connected is None else _unconnected(validator_set, machine.address, connected),
            explanation=(why,),
        )
    return _running(machine, height, now, connected)


def _running(machine: BftStateMachine, height: Height, now: float, connected: Collection[Address] | None) -> BftStatus:
    validator_set, round_ = height.validator_set, height.round
    me = machine.address
    others = [address for address in validator_set.validators if address != me]
    silent = tuple(address for address in others if address not in height.gathering.reached)
    disconnected = None if connected is None else _unconnected(validator_set, me, connected)
    phase = _phase(height)
    asked = max(height.current, 1)
    status = BftStatus(
        protocol=machine.rules.name,
        phase=phase,
        height=validator_set.height,
        round=height.current if height.current != NOT_STARTED else None,
        validators=validator_set.validators,
        quorum=validator_set.quorum,
        proposer=validator_set.proposer(max(height.current, 0)),
        proposal=round_.proposal.block.hash if round_.proposal is not None else None,
        prepares=_tally(validator_set, machine.rules.prepares_needed(validator_set), round_.prepares),
        commits=_tally(validator_set, validator_set.quorum, round_.commits),
        round_changes=_tally(validator_set, validator_set.quorum, height.round_changes.authors(asked)),
        silent=silent,
        disconnected=disconnected,
        prepared_round=height.durable_votes.prepared.round if height.durable_votes.prepared is not None else None,
        round_expires_in_s=_rest(height.timers.expires_at, now),
        block_due_in_s=_rest(height.timers.block_due, now),
        is_quorum_reachable=_is_reachable(validator_set, silent, disconnected, height.current),
        notes=tuple(height.notes),
    )
    return _explained(status, machine, height)


def _phase(height: Height) -> Phase:
    round_ = height.round
    if height.current == NOT_STARTED:
        return Phase.WAITING_FOR_BLOCK_TIME
    if round_.is_decided:
        return Phase.DECIDED
    if round_.has_committed:
        return Phase.COMMITTING
    if round_.proposal is not None:
        return Phase.PREPARING
    if height.current == 0 and height.timers.block_due is not None:
        return Phase.WAITING_FOR_BLOCK_TIME
    if height.current > 0 and len(height.round_changes.authors(height.current)) < height.validator_set.quorum:
        return Phase.WAITING_FOR_ROUND_CHANGES
    return Phase.WAITING_FOR_PROPOSAL


def _explained(status: BftStatus, machine: BftStateMachine, height: Height) -> BftStatus:
    lines: list[str] = []
    needed = height.validator_set.quorum
    if machine.fork_note is not None:
        lines.append(f"The chain has forked, which takes misbehaving validators: {machine.fork_note}.")
    if machine.has_foreign_signature:
        lines.append(
            f"A peer sent a message with a signature of this validator (0x{machine.address.hex()}) that this node did "
            "not send. Another node seems to have the same key: stop one of the two, since together they may sign "
            "two blocks of one height."
        )
    if status.is_quorum_reachable is False:
        missing = status.disconnected if status.disconnected is not None else status.silent
        verb = "connected" if status.disconnected is not None else "online"
        lines.append(
            f"No quorum: {needed} of {len(height.validator_set)} validators are needed and "
            f"{len(height.validator_set) - len(missing)} are {verb}. Not {verb}: {_names(missing)}."
        )
    lines.append(_waiting_for(status, machine.address))
    if status.round is not None and status.round > 0:
        lines.append(
            f"Round {status.round} of this height: {status.round} earlier "
            f"{'round has' if status.round == 1 else 'rounds have'} ended without a block."
        )
    if status.round_expires_in_s is not None and status.phase is not Phase.DECIDED:
        lines.append(f"The round ends in {max(0.0, status.round_expires_in_s):.1f} s.")
    return replace(status, explanation=tuple(lines))


def _waiting_for(status: BftStatus, me: Address) -> str:
    phase = status.phase
    if phase is Phase.WAITING_FOR_BLOCK_TIME:
        due = max(0.0, status.block_due_in_s or 0.0)
        return f"The next block is due in {due:.1f} s."
    if phase is Phase.WAITING_FOR_ROUND_CHANGES and status.round_changes is not None:
        return _lacking(status.round_changes, f"request for round {status.round}", f"requests for round {status.round}")
    if phase is Phase.WAITING_FOR_PROPOSAL:
        if status.proposer == me:
            return "This node is the proposer: its block is being built."
        return f"Waiting for {_names((status.proposer,) if status.proposer else ())} to propose a block."
    if phase is Phase.PREPARING and status.prepares is not None:
        return _lacking(status.prepares, "prepare", "prepares")
    if phase is Phase.COMMITTING and status.commits is not None:
        return _lacking(status.commits, "commit", "commits")
    return "The block is decided and being imported."


def _lacking(tally: VoteTally, one: str, many: str) -> str:
    count = tally.needed - len(tally.arrived)
    return f"Waiting for {count} more {one if count == 1 else many}; none from: {_names(tally.missing)}."


def _unconnected(validator_set: ValidatorSet, me: Address, connected: Collection[Address]) -> tuple[Address, ...]:
    return tuple(address for address in validator_set.validators if address != me and address not in connected)


def _is_reachable(
    validator_set: ValidatorSet, silent: tuple[Address, ...], disconnected: tuple[Address, ...] | None, current: int
) -> bool | None:
    if disconnected is not None:
        return len(validator_set) - len(disconnected) >= validator_set.quorum
    if len(validator_set) - len(silent) >= validator_set.quorum:
        return True
    # in round 0 it is unknown whether a quorum is reachable, because most validators have not sent a message yet
    return False if current > 0 else None


def _tally(validator_set: ValidatorSet, needed: int, arrived: Collection[Address]) -> VoteTally:
    return VoteTally(
        needed,
        tuple(address for address in validator_set.validators if address in arrived),
        tuple(address for address in validator_set.validators if address not in arrived),
    )


def _rest(at: float | None, now: float) -> float | None:
    return None if at is None else at - now


def _names(addresses: Iterable[Address]) -> str:
    return ", ".join(_hex(address) for address in addresses) or "none"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 2)


def _hex(value: bytes) -> str:
    return f"0x{value.hex()}"
