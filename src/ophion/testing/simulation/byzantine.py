"""Byzantine nodes.

A Byzantine node runs a real state machine, so that it acts at the right time, and changes the messages that the machine
sends. It has only its own key: it can repeat votes of others but not forge them. All Byzantine nodes of a run share
their knowledge at once, because cooperation is the worst case.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ophion.consensus.bft.messages import (
    BftMessage,
    Commit,
    Prepare,
    PreparedClaim,
    Proposal,
    ProposedBlock,
    RoundChange,
    SignedRoundChange,
)
from ophion.consensus.bft.round_change import Certificate
from ophion.primitives.types import Hash32
from ophion.testing.simulation.fake_crypto import (
    Content,
    FakeMessageFactory,
    stand_in_block,
    stand_in_seal,
    with_other_body,
)
from ophion.testing.simulation.fault_plan import Misconduct
from ophion.testing.simulation.simulated_node import FinalBlock, SimulatedMember

if TYPE_CHECKING:
    from ophion.testing.simulation.network import SimulatedNetwork

_OLD_MESSAGES: Final = 30
_SMALL_BODY_DELAY_S: Final = 0.001
"""Delay in seconds of a message with an empty body. It arrives before the message with the large block."""
_FAR_AHEAD: Final = (1, 2, 5, 1000, 2**31 - 1)


class LiarCoalition:
    """Shared knowledge of the Byzantine nodes: their indexes, and the receivers of each block."""

    def __init__(self, members: frozenset[int]) -> None:
        self.members = members
        self.audience: dict[Hash32, frozenset[int]] = {}
        """Nodes to which Byzantine nodes have sent a block, by the digest of the block."""


class Liar:
    """The Byzantine behaviour of one node."""

    def __init__(
        self,
        world: SimulatedNetwork,
        member: SimulatedMember,
        kinds: tuple[Misconduct, ...],
        coalition: LiarCoalition,
        rng: Random,
    ) -> None:
        self._world = world
        self._member = member
        self._kinds = frozenset(kinds)
        self._coalition = coalition
        self._rng = rng
        self._factory = FakeMessageFactory(member.address, world.network.rules)
        self._voted: set[bytes] = set()
        self._old: list[BftMessage] = []
        is_mute = kinds == (Misconduct.SILENCE,) and rng.random() < 0.5
        self._silent_until = math.inf if is_mute else 0.0
        self._tricks = 0

    # --- changing the machine's messages --------------------------------------------------------

    def say(self, message: BftMessage) -> None:
        """Send, change or drop a message that the machine would send to all validators."""
        if self._is_silent() or (isinstance(message, Proposal) and self._does(Misconduct.WITHHELD_PROPOSALS)):
            return
        if self._does(Misconduct.BODY_SWAP):
            self._swap_body(message)
        if self._does(Misconduct.OTHER_DIGESTS) and isinstance(message, Prepare | Commit):
            self._vote_for_nothing(message)
            return
        if isinstance(message, Proposal) and self._does(Misconduct.DOUBLE_PROPOSAL):
            self._propose_twice(message)
            return
        if isinstance(message, Commit) and self._does(Misconduct.FORGED_SEALS):
            self._send(self._forged(message))
            return
        if isinstance(message, RoundChange) and self._does(Misconduct.STALE_ROUND_CHANGES):
            self._ask_falsely(message)
            return
        self._send(message)

    def observe(self, message: BftMessage) -> None:
        """React to a received message. The machine processes the message too."""
        if self._is_silent():
            return
        if len(self._old) < _OLD_MESSAGES or self._rng.random() < 0.1:
            self._old.append(message)
            del self._old[:-_OLD_MESSAGES]
        if self._does(Misconduct.BODY_SWAP):
            self._swap_body(message)
        if self._does(Misconduct.REPLAY) and self._rng.random() < 0.3:
            self._send(message)
            self._send(self._rng.choice(self._old))
        if self._does(Misconduct.EQUIVOCATION) and isinstance(message, Proposal | Prepare | Commit):
            digest = message.block.digest if isinstance(message, Proposal) else message.digest
            self.support(message.height, message.round, digest)
        if self._does(Misconduct.STALE_ROUND_CHANGES) and self._rng.random() < 0.02:
            self._send(self._rng.choice(self._old))
        if self._does(Misconduct.FORGED_SEALS) and isinstance(message, Proposal) and self._rng.random() < 0.3:
            self._announce_forgery(message)

    def support(self, height: int, round_number: int, digest: bytes) -> None:
        """Vote for a digest, even if this node has voted for another digest. Only nodes that received the block get the
        votes.
        """
        mark = digest + round_number.to_bytes(8, "big")
        if mark in self._voted:
            return
        self._voted.add(mark)
        audience = self._coalition.audience.get(digest)
        to = None if audience is None else lambda member: member.index in audience
        self._send(self._factory.prepare(height, round_number, digest), to)
        self._send(self._factory.commit(height, round_number, digest, digest), to)

    # --- attacks --------------------------------------------------------------------------------

    def _swap_body(self, message: BftMessage) -> None:
        """Send a proposal or a round change whose block has another body but the same digest.

        In QBFT the proposer signs the body too, so a Byzantine node can replace the body only in its own proposals.
        """
        is_signed = isinstance(message, Proposal) and not self._world.network.rules.certifies_proposal
        if is_signed and message.author != self._member.address:
            return
        if isinstance(message, Proposal | RoundChange) and message.block is not None:
            if message.block.encoded in self._voted:
                return
            self._voted.add(message.block.encoded)
            block = with_other_body(message.block)
            mark = message.fingerprint + b"body"
            if isinstance(message, Proposal):
                self._send(dataclasses.replace(message, block=block, known_as=mark), delay_s=_SMALL_BODY_DELAY_S)
            else:
                self._send(dataclasses.replace(message, block=block, fingerprint=mark))

    def _vote_for_nothing(self, message: Prepare | Commit) -> None:
        digest = self._rng.randbytes(len(message.digest))
        if isinstance(message, Prepare):
            self._send(self._factory.prepare(message.height, message.round, digest))
        else:
            self._send(self._factory.commit(message.height, message.round, digest, digest))

    def _propose_twice(self, message: Proposal) -> None:
        """Send one block to some nodes, and another block to the others. Other Byzantine nodes support both blocks."""
        other = self._another(message)
        fellows, everyone = self._coalition.members, {member.index for member in self._others()}
        first = {index for index in everyone if self._rng.random() < 0.5}
        for proposal, believers in ((message, first), (other, everyone - first)):
            audience = frozenset(believers | fellows)
            self._coalition.audience[proposal.block.digest] = audience
            self._send(proposal, lambda member, audience=audience: member.index in audience)  # type: ignore[misc]
            self.support(proposal.height, proposal.round, proposal.block.digest)

    def _another(self, message: Proposal) -> Proposal:
        """Return a second proposal for the same round: another block, with a certificate that nodes might accept."""
        content = Content.decode(message.block.encoded)
        is_valid = self._rng.random() < 0.8
        block = stand_in_block(
            message.height,
            self._member.address,
            replace(content, nonce=content.nonce + 2**40, is_valid=is_valid),
            message.round,
        )
        changes = message.round_changes
        certificate = None
        if changes:
            innocent = tuple(change for change in changes if change.claim is None)
            certificate = Certificate(innocent, None, ())
        return self._factory.proposal(message.height, message.round, block, certificate)

    def _forged(self, message: Commit) -> Commit:
        """Return a commit with a seal of another node, of another hash, or of random bytes."""
        foreign = self._rng.choice(self._others()).address if self._others() else self._member.address
        self._tricks += 1
        seal = self._rng.choice(
            (
                stand_in_seal(foreign, bytes(32)),
                stand_in_seal(self._member.address, bytes(32)),
                b"",
                bytes(56),
            )
        )
        return dataclasses.replace(
            message, seal=seal, fingerprint=message.fingerprint + self._tricks.to_bytes(4, "big")
        )

    def _ask_falsely(self, message: RoundChange) -> None:
        """Hide a prepared block, claim an unprepared one, request a far round, or withhold and repeat messages."""
        trick = self._rng.randrange(4)
        if trick == 0:
            self._send(self._factory.round_change(message.height, message.round, None))
        elif trick == 1:
            ahead = message.round + self._rng.choice(_FAR_AHEAD)
            self._send(self._factory.round_change(message.height, ahead, None))
        elif trick == 2:
            self._send(self._invented(message))
        else:
            self._send(message, lambda _member: self._rng.random() < 0.5)
            for old in self._old[-3:]:
                self._send(old)

    def _invented(self, message: RoundChange) -> RoundChange:
        """Return a round change that claims a prepared block with only the node's own vote."""
        height, number = message.height, message.round
        content = Content(self._member.head.hash, self._member.head.timestamp + 1, 2**50 + number)
        block: ProposedBlock = stand_in_block(height, self._member.address, content, max(0, number - 1))
        own = self._factory.prepare(height, block.round, block.digest)
        rules = self._world.network.rules
        proposal = self._factory.proposal(height, block.round, block, None).signed if rules.certifies_proposal else None
        inside = (own,) if rules.certifies_proposal else ()
        claim = PreparedClaim(block.round, block.digest, proposal, inside)
        signed = SignedRoundChange(height, number, claim, self._member.address)
        outside = () if rules.certifies_proposal else (own, own)
        return RoundChange(signed, block, outside, message.fingerprint + b"invented")

    def _announce_forgery(self, message: Proposal) -> None:
        """Announce the proposal as a final block with invalid seals."""
        block = message.block
        seals = tuple(stand_in_seal(member.address, bytes(32)) for member in self._others())
        own = stand_in_seal(self._member.address, block.digest)
        forged = FinalBlock(block, message.round, (own, own, own, *seals), self._member.head.tally)
        self._world.delivery.announce(self._member, forged, self._world.members)

    # --- helpers --------------------------------------------------------------------------------

    def _does(self, kind: Misconduct) -> bool:
        return kind in self._kinds

    def _is_silent(self) -> bool:
        if not self._does(Misconduct.SILENCE):
            return False
        now = self._world.now
        if now < self._silent_until:
            return True
        if self._rng.random() < 0.02:
            self._silent_until = now + self._rng.random() * 10
        return False

    def _others(self) -> list[SimulatedMember]:
        return [member for member in self._world.members if member is not self._member]

    def _send(
        self, message: BftMessage, to: Callable[[SimulatedMember], bool] | None = None, delay_s: float | None = None
    ) -> None:
        receivers = [member for member in self._others() if to is None or to(member)]
        if self._does(Misconduct.WITHHOLDING):
            receivers = [member for member in receivers if self._rng.random() < 0.6]
        self._world.delivery.send(self._member, message, receivers, delay_s)
