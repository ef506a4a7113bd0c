"""Nodes that share validator keys act as one validator per key, and take over from each other. Votes wait for the
database only where the shared vote store cannot replace it.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import cast

import pytest

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import CastVote, VoteRefused, VoteStored
from ophion.consensus.bft.message_factory import BftProtocol
from ophion.consensus.bft.messages import BftMessage, Commit, PreparedRound, Proposal, ProposedBlock
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.vote_record import VoteRecord
from ophion.primitives import rlp
from ophion.producer.shared_vote_store import MemoryVoteStore
from ophion.producer.vote_caster import MAX_SHARED_PROOF_BLOCK_BYTES, VoteCaster
from ophion.producer.vote_store import VoteStore
from ophion.runtime.clock import ManualClock
from tests.unit.producer.authority import running
from tests.unit.producer.shared_key import Cluster, Machine, conflicts, shared_key_story

SEEDS = int(os.environ.get("SHARED_KEY_SEEDS", "2"))
BOTH = pytest.mark.parametrize("engine", ["ibft2", "qbft"])


def _agree(machines: list[Machine]) -> None:
    lowest = min(machine.height for machine in machines)
    assert len({machine.node.chain.canonical(lowest).hash for machine in machines}) == 1  # type: ignore[union-attr]


@BOTH
def test_two_nodes_per_key_make_a_block_every_period(tmp_path: Path, engine: str) -> None:
    async def story(machines: list[Machine], cluster: Cluster) -> None:
        async with running(*(machine.driver for machine in machines)):
            await asyncio.sleep(21)
        assert {machine.height for machine in machines} == {10}
        _agree(machines)
        assert conflicts(machines) == []
        casters = [machine.driver.caster for machine in machines]
        assert all(caster is not None and sum(caster.durations.counts) > 10 for caster in casters)
        assert sum(caster.refused for caster in casters if caster is not None) > 0, "each proposal is a race"

    shared_key_story(tmp_path, engine, story)


@BOTH
def test_a_partner_takes_over_within_the_round(tmp_path: Path, engine: str) -> None:
    async def story(machines: list[Machine], cluster: Cluster) -> None:
        firsts, seconds = machines[::2], machines[1::2]
        async with running(*(machine.driver for machine in seconds)):
            async with running(*(machine.driver for machine in firsts)):
                await asyncio.sleep(9)
            before = seconds[0].height
            await asyncio.sleep(10)
        assert seconds[0].height >= before + 4, "half of the nodes have stopped and no block is late"
        assert conflicts(machines) == []

    shared_key_story(tmp_path, engine, story)


@BOTH
def test_without_the_store_nothing_is_sent_and_blocks_come_soon_after_its_return(tmp_path: Path, engine: str) -> None:
    async def story(machines: list[Machine], cluster: Cluster) -> None:
        async with running(*(machine.driver for machine in machines)):
            await asyncio.sleep(7)
            before = machines[0].height
            cluster.is_away = True
            await asyncio.sleep(0.1)
            sent = [len(machine.sent) for machine in machines]
            await asyncio.sleep(31)
            assert [len(machine.sent) for machine in machines] == sent
            assert machines[0].driver.vote_store_problem == (
                "the vote store is unavailable: the test has switched it off"
            )
            assert "vote store is unavailable" in machines[0].driver.status().explanation[0]
            cluster.is_away = False
            await asyncio.sleep(1)
            assert machines[0].height > before
            assert machines[0].driver.vote_store_problem is None
            await asyncio.sleep(10)
            assert machines[0].height > before + 3
        assert conflicts(machines) == []

    shared_key_story(tmp_path, engine, story)


@BOTH
def test_commits_that_are_stored_without_a_reply_do_not_stop_the_network(tmp_path: Path, engine: str) -> None:
    async def story(machines: list[Machine], cluster: Cluster) -> None:
        async with running(*(machine.driver for machine in machines)):
            await asyncio.sleep(7)
            before = machines[0].height
            cluster.loses_replies_to_commits = True
            await asyncio.sleep(20)
            assert machines[0].height <= before + 1
            cluster.loses_replies_to_commits = False
            await asyncio.sleep(90)
            assert machines[0].height > before + 3, "a round change has the proof that the abandoned commit claimed"
        _agree(machines)
        assert conflicts(machines) == []

    shared_key_story(tmp_path, engine, story, keys=(0, 1, 2, 3))


@BOTH
@pytest.mark.parametrize("seconds", [3, 13])
def test_a_partner_without_the_proof_takes_it_from_a_round_change(tmp_path: Path, engine: str, seconds: int) -> None:
    async def story(machines: list[Machine], cluster: Cluster) -> None:
        first, partner, second, third, absent = machines
        cluster.keeps_proofs = False
        absent.is_cut = partner.is_cut = True
        for machine in machines:
            machine.withheld = Commit
        async with running(second.driver, third.driver):
            async with running(first.driver):
                await asyncio.sleep(seconds)
            assert cluster.records[first.address].prepared_round >= 0
            first.is_cut = True
            partner.is_cut = False
            for machine in machines:
                machine.withheld = None
            async with running(partner.driver):
                await asyncio.sleep(60)
        assert min(machine.height for machine in (partner, second, third)) > 3
        assert conflicts(machines) == []

    shared_key_story(tmp_path, engine, story, keys=(0, 0, 1, 2, 3))


@BOTH
@pytest.mark.parametrize("is_same_node", [False, True])
def test_a_proof_that_no_running_node_has_comes_from_the_store(tmp_path: Path, engine: str, is_same_node: bool) -> None:
    async def story(machines: list[Machine], cluster: Cluster) -> None:
        first, partner = machines
        cluster.loses_replies_to_commits = True
        async with running(first.driver):
            await asyncio.sleep(5)
        assert cluster.records[first.address].prepared_round == 0
        cluster.loses_replies_to_commits = False
        first.restart()
        async with running((first if is_same_node else partner).driver):
            await asyncio.sleep(30)
        assert max(machine.height for machine in machines) > 3
        assert conflicts(machines) == []

    shared_key_story(tmp_path, engine, story, keys=(0, 0))


@BOTH
def test_a_lone_validator_with_two_nodes_makes_one_chain(tmp_path: Path, engine: str) -> None:
    async def story(machines: list[Machine], cluster: Cluster) -> None:
        first, second = machines
        async with running(second.driver):
            async with running(first.driver):
                await asyncio.sleep(9)
            before = second.height
            assert before == first.height >= 3
            await asyncio.sleep(20)
            assert second.height > before + 3
        assert conflicts(machines) == []

    shared_key_story(tmp_path, engine, story, keys=(0, 0))


@pytest.mark.parametrize(("engine", "seed"), [(("ibft2", "qbft")[seed % 2], seed) for seed in range(SEEDS)])
def test_whatever_is_cut_or_stopped_no_key_contradicts_itself(tmp_path: Path, engine: str, seed: int) -> None:
    chance = random.Random(seed)

    async def life(machine: Machine, cluster: Cluster) -> None:
        """Stop, disconnect and connect one node at random times. Some stops are restarts of the process."""
        for _ in range(4):
            task = asyncio.create_task(machine.driver.run())
            await asyncio.sleep(chance.uniform(1, 12))
            machine.is_cut = chance.random() < 0.3
            await asyncio.sleep(chance.uniform(0, 4))
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            if chance.random() < 0.5:
                machine.restart()
            await asyncio.sleep(chance.uniform(0, 2))
            machine.is_cut = False

    async def outages(cluster: Cluster) -> None:
        while True:
            await asyncio.sleep(chance.uniform(5, 20))
            cluster.is_away = True
            await asyncio.sleep(chance.uniform(0, 3))
            cluster.is_away = False

    async def story(machines: list[Machine], cluster: Cluster) -> None:
        away = asyncio.create_task(outages(cluster))
        await asyncio.gather(*(life(machine, cluster) for machine in machines))
        away.cancel()
        cluster.is_away = False
        assert conflicts(machines) == []
        before = max(machine.height for machine in machines)
        async with running(*(machine.driver for machine in machines)):
            await asyncio.sleep(90)
        assert min(machine.height for machine in machines) > before
        _agree(machines)
        assert conflicts(machines) == []

    shared_key_story(tmp_path, engine, story, delays=(0.005, 0.05, 0.2))


class SlowDatabase:
    """`VoteStore` whose writes end when the test says so."""

    def __init__(self) -> None:
        self.begun: list[DurableVotes] = []
        self._may_end = asyncio.Semaphore(0)

    async def remember(self, protocol: BftProtocol, votes: DurableVotes) -> None:
        self.begun.append(votes)
        await self._may_end.acquire()

    def end_one(self) -> None:
        self._may_end.release()


class NamedVoteStore(MemoryVoteStore):
    """A store that decides without the database."""

    identity: str | None = "test:/named"


class ProofStore(NamedVoteStore):
    """A store that keeps proofs as well."""

    keeps_proofs = True

    async def promise(self, wanted: VoteRecord, *, proof: bytes | None = None) -> VoteRecord | None:
        is_new = wanted != self._stored
        refusal = await super().promise(wanted)
        if refusal is None and is_new and proof is not None:
            self.kept_proof = proof
        return refusal


def _order(votes: DurableVotes) -> CastVote:
    message = cast(BftMessage, Proposal.__new__(Proposal))
    return CastVote(votes.height, votes.round, lambda: message, lambda _: votes, lambda _: None)


def _prepared(round_number: int, block_bytes: int = 600) -> PreparedRound:
    block = ProposedBlock(6, round_number, bytes(20), b"\x02" * 32, bytes(32), rlp.encode_bytes(bytes(block_bytes)))
    return PreparedRound(round_number, block, (), None)


async def _cast(
    shared: MemoryVoteStore, database: SlowDatabase, results: list[VoteStored | VoteRefused], *votes: DurableVotes
) -> asyncio.Task[None]:
    """Cast votes and return the task that they run in. Returns when nothing moves any more without the database."""
    caster = VoteCaster(cast(VoteStore, database), shared, ManualClock(), results.append, lambda _: True)
    started = asyncio.Event()

    async def run() -> None:
        async with asyncio.TaskGroup() as tasks:
            for one in votes:
                caster.put(Qbft(), _order(one), tasks)
            started.set()

    running_task = asyncio.create_task(run())
    await started.wait()
    await _settle()
    return running_task


async def _settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_with_a_shared_store_the_database_gets_the_first_vote_and_new_proofs() -> None:
    async def story() -> None:
        database, results = SlowDatabase(), list[VoteStored | VoteRefused]()
        first, prepare = DurableVotes(5, 0, b"\x01" * 32), DurableVotes(6, 0, b"\x02" * 32)
        commit = DurableVotes(6, 0, b"\x02" * 32, _prepared(0))
        request = DurableVotes(6, 1, None, commit.prepared)
        task = await _cast(NamedVoteStore(), database, results, first, prepare, commit, request)
        assert results == [], "the database has no record that names the store"
        database.end_one()
        await _settle()
        assert [one.votes for one in results if isinstance(one, VoteStored)] == [first, prepare]
        assert database.begun == [first, commit], "the commit waits for its proof"
        database.end_one()
        await task
        assert len(results) == 4
        assert database.begun == [first, commit], "the round change has the same proof"

    asyncio.run(story())


def test_a_proof_with_a_small_block_is_stored_with_its_vote_and_not_in_the_database() -> None:
    async def story() -> None:
        database, results = SlowDatabase(), list[VoteStored | VoteRefused]()
        first, commit = DurableVotes(6, 0, b"\x02" * 32), DurableVotes(6, 0, b"\x02" * 32, _prepared(0))
        request = DurableVotes(6, 1, None, commit.prepared)
        shared = ProofStore()
        task = await _cast(shared, database, results, first, commit, request)
        database.end_one()
        await task
        assert len(results) == 3
        assert database.begun == [first]
        assert shared.kept_proof == commit.encode()

    asyncio.run(story())


def test_a_proof_with_a_large_block_is_in_the_database_before_its_vote_is_stored() -> None:
    async def story() -> None:
        database, results, shared = SlowDatabase(), list[VoteStored | VoteRefused](), ProofStore()
        first = DurableVotes(6, 0, b"\x02" * 32)
        commit = DurableVotes(6, 0, b"\x02" * 32, _prepared(0, MAX_SHARED_PROOF_BLOCK_BYTES))
        task = await _cast(shared, database, results, first, commit)
        database.end_one()
        await _settle()
        assert database.begun == [first, commit]
        assert await shared.promise(VoteRecord(6, 1)) is None, "the store has not got the commit"
        database.end_one()
        await task
        assert shared.kept_proof is None

    asyncio.run(story())


def test_a_proof_of_a_vote_that_a_partner_has_stored_is_written_before_the_message_is_sent() -> None:
    async def story() -> None:
        database, results, shared = SlowDatabase(), list[VoteStored | VoteRefused](), ProofStore()
        first, commit = DurableVotes(6, 0, b"\x02" * 32), DurableVotes(6, 0, b"\x02" * 32, _prepared(0))
        assert await shared.promise(VoteRecord.of(first)) is None
        assert await shared.promise(VoteRecord.of(commit)) is None
        task = await _cast(shared, database, results, first, commit)
        database.end_one()
        await _settle()
        assert database.begun == [first, commit]
        assert len(results) == 1
        database.end_one()
        await task
        assert len(results) == 2

    asyncio.run(story())


def test_without_a_shared_store_each_vote_waits_for_the_database() -> None:
    async def story() -> None:
        database, results = SlowDatabase(), list[VoteStored | VoteRefused]()
        task = await _cast(MemoryVoteStore(), database, results, DurableVotes(5, 0, b"\x01" * 32))
        assert results == []
        database.end_one()
        await task
        assert len(results) == 1

    asyncio.run(story())


def test_an_interrupted_write_is_repeated() -> None:
    async def story() -> None:
        database, results = SlowDatabase(), list[VoteStored | VoteRefused]()
        caster = VoteCaster(cast(VoteStore, database), NamedVoteStore(), ManualClock(), results.append, lambda _: True)
        votes = DurableVotes(5, 0, b"\x01" * 32)

        async def run() -> None:
            async with asyncio.TaskGroup() as tasks:
                caster.put(Qbft(), _order(votes), tasks)

        task = asyncio.create_task(run())
        await _settle()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        caster.clear()
        database.end_one()
        await run()
        assert database.begun == [votes, votes]
        assert len(results) == 1

    asyncio.run(story())
