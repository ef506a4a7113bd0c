"""Networks in which several nodes share each validator key, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.messages import BftMessage, Proposal, RoundChange
from ophion.consensus.bft.vote_record import VoteRecord, replacement
from ophion.consensus.validator_votes import LocalProposals
from ophion.primitives.types import Address
from ophion.producer.bft_driver import BftDriver
from ophion.producer.shared_vote_store import VotesUnavailable
from ophion.runtime.clock import ManualClock
from ophion.runtime.thread_pools import InlineLanes
from ophion.testing.node_core import TestCore
from ophion.testing.virtual_loop import run_virtually
from tests.unit.producer.authority import KEYS, authority_genesis, connect, open_network


class Cluster:
    """A simulated vote store: one record per key, with a delay and an outage."""

    def __init__(self, delay_s: float = 0.002) -> None:
        self.records: dict[Address, VoteRecord] = {}
        self.proofs: dict[Address, bytes] = {}
        self.keeps_proofs = True
        self.is_away = False
        self.loses_replies_to_commits = False
        """Whether the cluster stores a record with a new proof of preparation, and its reply does not arrive."""
        self._delay_s = delay_s

    def of(self, validator: Address) -> ClusterVotes:
        return ClusterVotes(self, validator, self._delay_s)


class ClusterVotes:
    """`SharedVoteStore` of one node, stored in a simulated cluster."""

    name = "test cluster"
    identity: str | None = "test:/cluster"

    def __init__(self, cluster: Cluster, validator: Address, delay_s: float) -> None:
        self._cluster = cluster
        self._validator = validator
        self._delay_s = delay_s
        self.kept_proof: bytes | None = None

    @property
    def keeps_proofs(self) -> bool:
        return self._cluster.keeps_proofs

    async def promise(self, wanted: VoteRecord, *, proof: bytes | None = None) -> VoteRecord | None:
        await asyncio.sleep(self._delay_s)
        if self._cluster.is_away:
            raise VotesUnavailable("the test has switched it off")
        records = self._cluster.records
        record = replacement(records.get(self._validator), wanted)
        if record is None:
            return records[self._validator]
        is_new = record != records.get(self._validator)
        records[self._validator] = record
        if proof is not None and is_new and record.prepared_round == wanted.prepared_round:
            self._cluster.proofs[self._validator] = proof
        if self._cluster.loses_replies_to_commits and record.prepared is not None:
            raise VotesUnavailable("the test drops the reply")
        await asyncio.sleep(self._delay_s)
        if self._cluster.proofs.get(self._validator) is proof:
            self.kept_proof = proof
        return None

    async def proof(self) -> bytes | None:
        await asyncio.sleep(self._delay_s)
        if self._cluster.is_away:
            raise VotesUnavailable("the test has switched it off")
        return self._cluster.proofs.get(self._validator)

    def close(self) -> None:
        """Do nothing."""


class Machine:
    """One node: its chain, its driver, and its gossip, which a test can interrupt."""

    def __init__(self, node: TestCore, index: int, key: int, cluster: Cluster, delay_s: float) -> None:
        self.node = node
        self.address = KEYS[key].address
        self.sent: list[BftMessage] = []
        self.is_cut = False
        self.withheld: type[BftMessage] | None = None
        """Kind of messages that do not leave this node."""
        self.others: list[Machine] = []
        self._delay_s = delay_s
        self._key = KEYS[key]
        self._cluster = cluster
        # give each node its own extra data, so that blocks of two nodes differ
        node.core.assembler.settings.extra_data = index.to_bytes(32)
        self.driver = self._from_database()

    def restart(self) -> None:
        """Forget everything that is not in the database. The driver must not run."""
        self.driver = self._from_database()

    def _from_database(self) -> BftDriver:
        engine, core = self.node.chain.engine, self.node.core
        assert isinstance(engine, BftEngine)
        votes = self._cluster.of(self.address)
        return BftDriver(
            core.assembler,
            core.importer,
            engine,
            self._key,
            LocalProposals(),
            InlineLanes(),
            self,
            shared_votes=votes,
        )

    @property
    def height(self) -> int:
        return self.node.queries.head_number

    # --- Gossip ---------------------------------------------------------------------------------

    def multicast(self, message: BftMessage, validators: Collection[Address]) -> None:
        self.sent.append(message)
        self._send(message, lambda other: other.address in validators)

    def send(self, message: BftMessage, to: Address) -> None:
        self._send(message, lambda other: other.address == to)

    def relay(self, message: BftMessage, exclude: Collection[Address | None]) -> None:
        self._send(message, lambda other: True)

    def _send(self, message: BftMessage, wants: Callable[[Machine], bool]) -> None:
        if self.withheld is not None and isinstance(message, self.withheld):
            return
        for other in self.others:
            if wants(other) and not (self.is_cut or other.is_cut):
                asyncio.get_running_loop().call_later(self._delay_s, other.driver.received, message.raw, self.address)

    def catch_up(self, peer: Address | None, height: int) -> None:
        """Do nothing, because `connect` delivers the blocks."""

    def connected(self) -> Collection[Address]:
        return {other.address for other in self.others if not (self.is_cut or other.is_cut)}

    def clients(self) -> Iterable[str]:
        return ["ophion/v1"]

    def client_of(self, address: Address) -> str | None:
        return "ophion/v1"


def shared_key_story(
    tmp_path: Path,
    engine: str,
    story: Callable[[list[Machine], Cluster], Awaitable[Any]],
    keys: Sequence[int] = (0, 0, 1, 1, 2, 2, 3, 3),
    delays: Sequence[float] = (0.005,),
) -> None:
    """Run a scenario with one node per entry of `keys`."""
    clock = ManualClock()
    members = [KEYS[key].address for key in sorted(set(keys))]
    genesis = authority_genesis(engine, members, blockperiodseconds=2, requesttimeoutseconds=4)
    with open_network(tmp_path, genesis, [KEYS[key] for key in keys], clock) as nodes:

        async def main() -> None:
            cluster = Cluster()
            machines = [
                Machine(node, index, key, cluster, delays[index % len(delays)])
                for index, (node, key) in enumerate(zip(nodes, keys, strict=True))
            ]
            for machine in machines:
                machine.others = [other for other in machines if other is not machine]
            connect(nodes)
            await story(machines, cluster)

        run_virtually(main(), clock)


def conflicts(machines: Iterable[Machine]) -> list[str]:
    """Return all pairs of messages that one key signed for one round with different contents."""
    known: dict[tuple[Address, str, int, int], bytes] = {}
    found = []
    for machine in machines:
        for message in machine.sent:
            slot = (machine.address, type(message).__name__, message.height, message.round)
            content = _content(message)
            if known.setdefault(slot, content) != content:
                found.append(f"two of {slot[1]} {message.height}/{message.round}")
    return found


def _content(message: BftMessage) -> bytes:
    if isinstance(message, RoundChange):
        claim = message.signed.claim
        return b"" if claim is None else b"%d" % claim.round + claim.digest
    return message.block.digest if isinstance(message, Proposal) else message.digest
