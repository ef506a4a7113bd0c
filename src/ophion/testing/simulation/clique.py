"""Simulates Clique networks: in-turn blocks, delays, forks and fork choice, with real engine and headers.

Headers, seals and rules are real, unlike in the BFT simulation. Blocks are sent whole; a node fetches the unknown
ancestors of a block. Sealing follows consensus.md 1.7, and the engine decides the fork choice (1.8).
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.clique import IN_TURN, OUT_OF_TURN, CliqueEngine
from ophion.consensus.engine import BlockPreferences, Tip
from ophion.consensus.validator_votes import LocalProposals
from ophion.errors import InvalidHeader
from ophion.native.crypto import PrivateKey
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address, Hash32
from ophion.testing.simulation.fault_plan import CALM, LinkQuality
from ophion.testing.simulation.invariants import Violation
from ophion.testing.simulation.trace import Row, Trace

DELAY_UNIT_S: Final = 0.5
ALLOWED_LEAD_S: Final = 10
_FIRST_KEY: Final = 1


class SealPlan(Struct):
    """A block that a signer is about to seal."""

    parent: HashedHeader
    timestamp: int
    is_in_turn: bool
    token: int


class SimulatedSigner:
    """One node of a Clique network."""

    def __init__(self, index: int, key: PrivateKey, genesis: HashedHeader) -> None:
        self.index = index
        self.key = key
        self.head = genesis
        self.known: set[Hash32] = {genesis.hash}
        self.plan: SealPlan | None = None
        self.is_up = True
        self.group = 0
        self.skew_s = 0.0
        self.misbehaves = False
        self.proposals = LocalProposals()
        self.reorgs = 0

    @property
    def name(self) -> str:
        return f"V{self.index}"

    @property
    def address(self) -> Address:
        return self.key.address


class SimulatedCliqueNetwork:
    """Signers that share one clock. One store holds all blocks; each signer knows some of these blocks."""

    def __init__(
        self,
        signers: int,
        seed: int = 0,
        period_s: int = 1,
        epoch_length: int = 30_000,
        dishonest: Iterable[int] = (),
        trace: Trace | None = None,
        listed: Sequence[int] | None = None,
    ) -> None:
        """Create a network. `listed` are the signers in the genesis, in the order of the file; by default all."""
        self.rng = Random(seed)
        self.now = 0.0
        self.period_s = period_s
        self.link: LinkQuality = CALM
        self.filter: Callable[[int, int, HashedHeader], bool] | None = None
        self.trace = trace
        self.violations: list[Violation] = []
        self.steps = 0
        keys = sorted((PrivateKey((_FIRST_KEY + i).to_bytes(32, "big")) for i in range(signers)), key=_by_address)
        chosen = [keys[index] for index in (range(signers) if listed is None else listed)]
        self.engine, genesis = _genesis(chosen, period_s, epoch_length)
        self.blocks: dict[Hash32, HashedHeader] = {genesis.hash: genesis}
        self.totals: dict[Hash32, int] = {genesis.hash: genesis.header.difficulty}
        self.members = [SimulatedSigner(index, key, genesis) for index, key in enumerate(keys)]
        self._bad: set[Hash32] = set()
        self._heap: list[tuple[float, int, Callable[[SimulatedSigner, Any], None], SimulatedSigner, Any]] = []
        self._count = 0
        self._running = 0
        for index in dishonest:
            self.members[index].misbehaves = True

    # --- read by engines ------------------------------------------------------------------------

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        return self.blocks.get(block_hash)

    def canonical(self, number: int) -> HashedHeader | None:
        return None

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        return self.totals.get(block_hash)

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        return ()

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """Return None, so that the engine computes every state from headers."""
        return None

    # --- control by tests -----------------------------------------------------------------------

    def start(self) -> None:
        for member in self.members:
            self._replan(member)

    def crash(self, index: int) -> None:
        self.members[index].is_up = False
        self.members[index].plan = None
        self._note(f"V{index} stops")

    def restart(self, index: int) -> None:
        member = self.members[index]
        if not member.is_up:
            member.is_up = True
            self._note(f"V{index} starts at block {member.head.number}")
            self.introduce(member)
            self._replan(member)

    def divide(self, groups: Iterable[int]) -> None:
        for member, group in zip(self.members, groups, strict=True):
            member.group = group
        self._note("the network is divided: " + " ".join(str(member.group) for member in self.members))

    def reunite(self) -> None:
        for member in self.members:
            member.group = 0
        self._note("the network is whole again")
        for member in self.members:
            self.introduce(member)

    def introduce(self, member: SimulatedSigner) -> None:
        """Exchange heads with all other simulated nodes, as a real node does when it connects."""
        for other in self.members:
            if other is not member and other.is_up and member.is_up:
                self._send(member, other, member.head)
                self._send(other, member, other.head)

    def at(self, time: float, action: Callable[[], None]) -> None:
        self._schedule(time, lambda _member, _payload: action(), self.members[0], None)

    def run(self, until: float, unless: Callable[[], bool] | None = None) -> bool:
        """Run until a time or until a rule is broken. Stops early and returns True when `unless` holds."""
        while self._heap and self._heap[0][0] <= until:
            self.now, self._running, action, member, payload = heapq.heappop(self._heap)
            self.steps += 1
            action(member, payload)
            if self.violations:
                return False
            if unless is not None and unless():
                return True
        self.now = max(self.now, until)
        return unless is not None and unless()

    @property
    def honest(self) -> list[SimulatedSigner]:
        return [member for member in self.members if not member.misbehaves]

    def chain(self, member: SimulatedSigner) -> list[HashedHeader]:
        """Return the node's canonical chain from genesis on."""
        found = [member.head]
        while found[-1].number > 0:
            found.append(self.blocks[found[-1].parent_hash])
        return found[::-1]

    def author(self, block: HashedHeader) -> int:
        """Return the index of the sealer of a block."""
        address = self.engine.author(block)
        return next(member.index for member in self.members if member.address == address)

    # --- sealing (consensus.md 1.7) -------------------------------------------------------------

    def _replan(self, member: SimulatedSigner) -> None:
        member.plan = None
        parent = member.head
        snapshot = self.engine.snapshot(parent, self)
        number = parent.number + 1
        if not member.is_up or not snapshot.may_sign(member.address, number):
            return
        local = self.now + member.skew_s
        timestamp = max(parent.timestamp + self.period_s, int(local))
        is_in_turn = snapshot.in_turn(number) == member.address
        release = max(local, float(timestamp))
        if not is_in_turn:
            release += self.rng.random() * snapshot.limit * DELAY_UNIT_S
        token = self._schedule(release - member.skew_s, self._seal, member, None)
        member.plan = SealPlan(parent, timestamp, is_in_turn, token)

    def _seal(self, member: SimulatedSigner, _payload: None) -> None:
        plan = member.plan
        if plan is None or plan.token != self._running or not member.is_up:
            return
        member.plan = None
        snapshot = self.engine.snapshot(plan.parent, self)
        vote = member.proposals.next_vote(snapshot.is_meaningful)
        header = self.engine.prepare(plan.parent, BlockPreferences(plan.timestamp, member.address, vote=vote), self)
        if member.misbehaves:
            self._misbehave(member, header)
            return
        block = self._sealed(member, header)
        self._take(member, block)
        self._broadcast(member, block, self.members)

    def _sealed(self, member: SimulatedSigner, header: Header) -> HashedHeader:
        seal = member.key.sign(self.engine.signing_hash(header))
        block = self.engine.hashed(self.engine.attach(header, [seal]))
        self.blocks.setdefault(block.hash, block)
        return block

    def _misbehave(self, member: SimulatedSigner, header: Header) -> None:
        """Misbehave: seal two blocks at one height, a block of false difficulty or an early block, or send a block to
        few nodes.
        """
        trick = self.rng.randrange(4)
        half = [other for other in self.members if self.rng.random() < 0.5]
        block = self._sealed(member, header)
        if trick == 0:
            other = self._sealed(member, replace(header, state_root=b"\x01" * 32))
            rest = [one for one in self.members if one not in half]
            self._broadcast(member, other, rest)
            self._broadcast(member, block, half)
        elif trick == 1:
            swapped = IN_TURN if header.difficulty == OUT_OF_TURN else OUT_OF_TURN
            self._broadcast(member, self._sealed(member, replace(header, difficulty=swapped)), self.members)
            self._broadcast(member, block, self.members)
        elif trick == 2:
            early = self._sealed(member, replace(header, timestamp=header.timestamp + 3600))
            self._broadcast(member, early, self.members)
            self._broadcast(member, block, self.members)
        else:
            self._broadcast(member, block, half)
        self._take(member, block)

    # --- blocks ---------------------------------------------------------------------------------

    def _broadcast(self, sender: SimulatedSigner, block: HashedHeader, receivers: Iterable[SimulatedSigner]) -> None:
        fates: dict[int, float | None] = {}
        for receiver in receivers:
            if receiver is not sender:
                fates[receiver.index] = self._send(sender, receiver, block)
        if self.trace is not None:
            cells = {index: "lost" if delay is None else f"+{delay * 1000:.0f}" for index, delay in fates.items()}
            turn = "in turn" if block.header.difficulty == IN_TURN else "out of turn"
            cells[sender.index] = "seals"
            self.trace.rows.append(Row(self.now, cells, f"block {block.number} {block.hash[:4].hex()} {turn}"))

    def _send(self, sender: SimulatedSigner, receiver: SimulatedSigner, block: HashedHeader) -> float | None:
        if sender.group != receiver.group:
            return None
        if self.filter is not None and not self.filter(sender.index, receiver.index, block):
            return None
        delays = self.link.fate(self.rng)
        for delay in delays:
            self._schedule(self.now + delay, self._receive, receiver, block)
        return min(delays) if delays else None

    def _receive(self, member: SimulatedSigner, block: HashedHeader) -> None:
        if member.is_up and block.hash not in member.known:
            self._take(member, block)
            if block.hash in member.known:
                for other in self.members:
                    if other is not member and block.hash not in other.known:
                        self._send(member, other, block)

    def _take(self, member: SimulatedSigner, block: HashedHeader) -> None:
        """Import a block after its unknown ancestors. A block from the future is imported later."""
        missing = [block]
        while missing[-1].parent_hash not in member.known:
            missing.append(self.blocks[missing[-1].parent_hash])
        for candidate in reversed(missing):
            if candidate.timestamp > int(self.now + member.skew_s) + ALLOWED_LEAD_S:
                wait = candidate.timestamp - ALLOWED_LEAD_S - member.skew_s
                if wait < self.now + 60:
                    self._schedule(wait, self._receive, member, block)
                return
            if not self._is_valid(candidate):
                return
            member.known.add(candidate.hash)
            self._choose(member, candidate)

    def _is_valid(self, block: HashedHeader) -> bool:
        """Return whether the engine accepts the block. Once the block's timestamp has passed, the result is the same on
        all nodes.
        """
        if block.hash in self._bad:
            return False
        if block.hash in self.totals:
            return True
        parent = self.blocks[block.parent_hash]
        try:
            self.engine.verify(block, parent, self, block.timestamp)
        except InvalidHeader:
            self._bad.add(block.hash)
            return False
        self.totals[block.hash] = self.totals[parent.hash] + block.header.difficulty
        return True

    def _choose(self, member: SimulatedSigner, block: HashedHeader) -> None:
        head = member.head
        new, old = self._tip(block), self._tip(head)
        if not self.engine.prefers(new, old, self):
            return
        if not member.misbehaves and new.total_difficulty < old.total_difficulty:
            self.report("total difficulty never falls", f"{member.name} goes from block {head} to {block}")
        if block.parent_hash != head.hash:
            member.reorgs += 1
        member.head = block
        self._check_recency(member, block)
        plan = member.plan
        keeps = (
            plan is not None
            and plan.is_in_turn
            and block.number == plan.parent.number + 1
            and self.engine.author(block) != member.address
        )
        if not keeps:
            self._replan(member)

    def _check_recency(self, member: SimulatedSigner, block: HashedHeader) -> None:
        """Check that no signer signs twice within floor(n/2)+1 blocks. Does not use the engine's snapshots."""
        signers = self.engine.members(self.blocks[block.parent_hash], self)
        author, cursor = self.engine.author(block), block
        for _ in range(len(signers) // 2):
            cursor = self.blocks[cursor.parent_hash]
            if cursor.number == 0:
                return
            if self.engine.author(cursor) == author:
                self.report("signers take turns", f"{member.name} accepts block {block} of a recent signer")

    def _tip(self, block: HashedHeader) -> Tip:
        return Tip(block, self.totals[block.hash])

    # --- helpers --------------------------------------------------------------------------------

    def _schedule(
        self, at: float, action: Callable[[SimulatedSigner, Any], None], member: SimulatedSigner, payload: Any
    ) -> int:
        self._count += 1
        heapq.heappush(self._heap, (max(at, self.now), self._count, action, member, payload))
        return self._count

    def report(self, rule: str, detail: str) -> None:
        """Record a broken rule; the run ends."""
        self.violations.append(Violation(self.now, rule, detail))

    def _note(self, text: str) -> None:
        if self.trace is not None:
            self.trace.add_note(self.now, text)


def _by_address(key: PrivateKey) -> Address:
    return key.address


def _genesis(keys: Sequence[PrivateKey], period_s: int, epoch_length: int) -> tuple[CliqueEngine, HashedHeader]:
    extra = bytes(32) + b"".join(key.address for key in keys) + bytes(65)
    document = {
        "config": {
            "chainId": 1337,
            "berlinBlock": 0,
            "clique": {"blockperiodseconds": period_s, "epochlength": epoch_length},
        },
        "gasLimit": "0x47b760",
        "difficulty": "0x1",
        "extraData": "0x" + extra.hex(),
    }
    genesis = parse_genesis(json.dumps(document))
    engine = CliqueEngine(genesis.spec)
    return engine, engine.hashed(genesis.header(bytes(32)))
