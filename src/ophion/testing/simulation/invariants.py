"""Checks rules that must hold after every step, without looking into the state machines.

The checker sees what a node sends, stores, decides and imports. The rules apply to honest nodes, which neither
misbehave nor lose their disk.
"""

from __future__ import annotations

from msgspec import Struct

from ophion.consensus.bft.message_buffer import MessageLimits
from ophion.consensus.bft.messages import BftMessage, Commit, Prepare, Proposal, RoundChange
from ophion.consensus.bft.protocol import ProtocolRules
from ophion.consensus.bft.state_machine import BftStateMachine
from ophion.consensus.bft.validator_set import quorum_of, tolerated_faults
from ophion.primitives.types import Hash32
from ophion.testing.simulation.fake_crypto import has_other_body
from ophion.testing.simulation.simulated_node import FinalBlock, SimulatedMember

_SEEN_PER_VALIDATOR = 4
"""Limit on stored message fingerprints per validator. The fingerprints detect duplicates in large networks."""
_MESSAGES_PER_VALIDATOR = 12
"""Limit on stored messages: votes of the current and three later rounds, and three round changes, with a margin."""
_MESSAGES_BESIDE = 24


class Violation(Struct, frozen=True):
    """A consensus rule that a node has broken, or a network that makes no blocks."""

    time: float
    rule: str
    detail: str

    def __str__(self) -> str:
        return f"{self.rule} (at {self.time:.3f} s): {self.detail}"


class Checker:
    """Collects violations. The run ends with the first violation."""

    def __init__(self, rules: ProtocolRules, limits: MessageLimits, members: int, dishonest: frozenset[int]) -> None:
        self.dishonest = dishonest
        self.forgetful: frozenset[int] = frozenset()
        """Nodes that lose their disk but are not Byzantine. They skip the height at which they restart."""
        self.violations: list[Violation] = []
        self.finals: dict[int, FinalBlock] = {}
        """Blocks decided by honest nodes, by height."""
        self.decided_rounds: list[int] = []
        """Round in which each height was first decided."""
        self._rules = rules
        self._bound = (
            max(limits.duplicates, _SEEN_PER_VALIDATOR * members)
            + limits.gossiped_history
            + limits.future_messages
            + _MESSAGES_PER_VALIDATOR * members
            + _MESSAGES_BESIDE
        )
        self._votes: dict[tuple[int, int, int, type], Hash32] = {}
        """Digest of each vote, by (node, height, round, kind)."""
        self._round_reached: dict[tuple[int, int], int] = {}
        """Latest requested round, by (node, height)."""
        self._committers: dict[tuple[int, int, Hash32], set[int]] = {}
        """Honest nodes that committed a block, by (height, round, hash)."""
        self._locks: dict[int, tuple[int, Hash32]] = {}
        """Locked block of each height, as (round, hash). Enough honest nodes hold the proof of a locked block. Later
        votes must be for this block.
        """

    # --- called for actions of members ----------------------------------------------------------

    def on_step(self, member: SimulatedMember, machine: BftStateMachine, now: float) -> None:
        """Check that the memory of a machine is bounded."""
        if machine.footprint() > self._bound and member.index not in self.dishonest:
            self._broken(now, "bounded memory", f"{member.name} holds {machine.footprint()} messages")

    def on_say(self, member: SimulatedMember, message: BftMessage, now: float) -> None:
        """Check that an honest node never contradicts itself, and sends a vote only after the vote is on disk."""
        if member.index in self.dishonest:
            if member.index in self.forgetful:
                self._check_single_vote(member, message, now)
            return
        self._check_remembered(member, message, now)
        if isinstance(message, RoundChange):
            key = (member.index, message.height)
            self._round_reached[key] = max(self._round_reached.get(key, 0), message.round)
            return
        self._check_single_vote(member, message, now)
        if self._round_reached.get((member.index, message.height), 0) > message.round:
            self._broken(now, "rounds only go up", f"{member.name} votes in {_place(message)} after leaving it")
        if isinstance(message, Commit):
            self._note_commit(member, message)
        else:
            self._check_lock(member, message, now)
            self._check_justified(member, message, now)

    def on_decision(self, member: SimulatedMember, block: FinalBlock, now: float) -> None:
        """Check that a decided block has its own body, and is sealed by a quorum of distinct validators."""
        if member.index in self.dishonest or block.height != member.height + 1:
            return
        if has_other_body(block.block):
            self._broken(now, "bodies belong to their headers", f"{member.name} decides another body")
        if not block.is_sealed_by(member.head.tally.validators):
            self._broken(now, "a quorum of valid seals", f"{member.name} decides block {block.height} without one")

    def on_final(self, member: SimulatedMember, block: FinalBlock, now: float) -> None:
        """Check that an imported block is the same on all chains."""
        if member.index in self.dishonest:
            return
        known = self.finals.get(block.height)
        if known is None:
            self.finals[block.height] = block
            self.decided_rounds.append(block.round)
        elif known.hash != block.hash:
            self._broken(
                now,
                "one block per height",
                f"{member.name} has {_short(block.hash)} at height {block.height}, others have {_short(known.hash)}",
            )

    def stalled(self, now: float, detail: str) -> None:
        """Record that no block was made although the network was healthy."""
        self._broken(now, "height grows after healing", detail)

    # --- helpers --------------------------------------------------------------------------------

    def _check_remembered(self, member: SimulatedMember, message: BftMessage, now: float) -> None:
        """Check that a vote is on disk before it is sent (consensus.md 2.10)."""
        durable_votes = member.durable_votes
        kept = (
            durable_votes is not None
            and durable_votes.height == message.height
            and durable_votes.round >= message.round
        )
        if kept and durable_votes is not None and isinstance(message, Commit):
            kept = durable_votes.prepared is not None and durable_votes.prepared.round >= message.round
        if kept and durable_votes is not None and isinstance(message, Prepare):
            kept = durable_votes.round > message.round or durable_votes.vote == message.digest
        if not kept:
            self._broken(
                now, "remembered before announced", f"{member.name} says {_place(message)} without memory of it"
            )

    def _check_single_vote(self, member: SimulatedMember, message: BftMessage, now: float) -> None:
        """Check that a node votes once per round, even across restarts. A node with a lost disk is exempt at the first
        two heights.
        """
        if isinstance(message, RoundChange) or (message.height <= 2 and member.index in self.forgetful):
            return
        digest = message.block.digest if isinstance(message, Proposal) else message.digest
        known = self._votes.setdefault((member.index, message.height, message.round, type(message)), digest)
        if known != digest:
            self._broken(now, "one vote per round", f"{member.name} says two things in {_place(message)}")

    def _note_commit(self, member: SimulatedMember, message: Commit) -> None:
        """Record a commit. If Q - f honest nodes have committed a block, the block may be decided, so the checker locks
        this block.
        """
        validators = len(member.head.tally.validators)
        block_hash = _hash_of(member, message)
        committers = self._committers.setdefault((message.height, message.round, block_hash), set())
        committers.add(member.index)
        enough = quorum_of(validators) - min(tolerated_faults(validators), len(self.dishonest))
        if len(committers) >= enough:
            locked = self._locks.get(message.height)
            if locked is None or locked[0] < message.round:
                self._locks[message.height] = (message.round, block_hash)

    def _check_lock(self, member: SimulatedMember, message: Proposal | Prepare, now: float) -> None:
        lock = self._locks.get(message.height)
        if lock is None or message.round <= lock[0]:
            return
        if _hash_of(member, message) != lock[1]:
            self._broken(
                now,
                "a locked block is not replaced",
                f"{member.name} votes in {_place(message)} for another block than the one locked in round {lock[0]}",
            )

    def _check_justified(self, member: SimulatedMember, message: Proposal | Prepare, now: float) -> None:
        """Check that a prepared block is replaced only if a certificate allows it."""
        if message.round == 0:
            return
        proposal = message if isinstance(message, Proposal) else _accepted(member)
        if proposal is None or proposal.round != message.round:
            self._broken(
                now, "votes follow proposals", f"{member.name} votes in {_place(message)} for nothing it accepted"
            )
            return
        changes = proposal.round_changes or ()
        validators = member.head.tally.validators
        authors = {change.author for change in changes} & set(validators)
        claims = [change.claim for change in changes if change.claim is not None]
        if len(authors) < quorum_of(len(validators)):
            self._broken(
                now, "later rounds are justified", f"{member.name} votes in {_place(message)} without certificate"
            )
        elif claims:
            best = max(claims, key=lambda claim: claim.round)
            # compare without the last four bytes, because a simulated digest stores the round there
            if best.digest[:-4] != proposal.block.hash[:-4]:
                self._broken(
                    now,
                    "a prepared block is not replaced",
                    f"{member.name} votes in {_place(message)} for another block than the prepared one",
                )

    def _broken(self, now: float, rule: str, detail: str) -> None:
        self.violations.append(Violation(now, rule, detail))


def _accepted(member: SimulatedMember) -> Proposal | None:
    machine = member.machine
    return machine.height.round.proposal if machine is not None and machine.height is not None else None


def _hash_of(member: SimulatedMember, message: BftMessage) -> Hash32:
    """Return the block hash of a vote: the fake digest without its round."""
    digest = message.block.digest if isinstance(message, Proposal) else getattr(message, "digest", b"")
    return bytes(digest[:-4])


def _place(message: BftMessage) -> str:
    return f"{type(message).__name__.lower()} {message.height}/{message.round}"


def _short(block_hash: Hash32) -> str:
    return block_hash[:4].hex()
