"""Votes in a real etcd: ETCD names the program."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.consensus.bft.vote_record import VoteRecord
from ophion.producer.etcd_votes import EtcdVotes
from ophion.producer.shared_votes import VotesUnavailable
from tests.faults.etcd_cluster import ETCD, REASON, EtcdCluster
from tests.unit.hostile_node import hostile_node

CHAIN, VALIDATOR, OTHER = b"\x0c" * 32, b"\x0a" * 20, b"\x0b" * 20
X, Y = b"\x01" * 32, b"\x02" * 32


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[EtcdCluster]:
    if ETCD is None:
        pytest.skip(REASON)
    with EtcdCluster(tmp_path / "etcd") as cluster:
        yield cluster


async def _until_available(votes: EtcdVotes, record: VoteRecord) -> VoteRecord | None:
    for _ in range(200):
        try:
            return await votes.promise(record)
        except VotesUnavailable:
            await asyncio.sleep(0.05)
    raise AssertionError("etcd did not start")


def test_two_nodes_agree_on_one_record(etcd: EtcdCluster) -> None:
    async def story() -> None:
        one = EtcdVotes(["http://127.0.0.1:1", etcd.urls[0]], "test", CHAIN, VALIDATOR)
        two = EtcdVotes([etcd.urls[0]], "/test/", CHAIN, VALIDATOR)
        assert await _until_available(one, VoteRecord(5, 0, X)) is None
        assert await two.promise(VoteRecord(5, 0, Y)) == VoteRecord(5, 0, X)
        assert await two.promise(VoteRecord(5, 0, X)) is None
        assert await two.promise(VoteRecord(5, 1)) is None
        assert await one.promise(VoteRecord(5, 0, X, 0, X)) == VoteRecord(5, 1)
        assert await one.promise(VoteRecord(6, 0, Y)) is None
        assert await two.promise(VoteRecord(5, 2)) == VoteRecord(6, 0, Y)
        stranger = EtcdVotes([etcd.urls[0]], "test", CHAIN, OTHER)
        assert await stranger.promise(VoteRecord(1, 0, Y)) is None, "each key has its own record"
        for votes in (one, two, stranger):
            votes.close()

    asyncio.run(story())


def test_of_many_nodes_one_wins_each_round(etcd: EtcdCluster) -> None:
    async def story() -> None:
        nodes = [EtcdVotes([etcd.urls[0]], "test", CHAIN, VALIDATOR) for _ in range(4)]
        await _until_available(nodes[0], VoteRecord(1))
        for height in range(2, 30):
            digests = [bytes([height, index]) + bytes(30) for index in range(len(nodes))]
            answers = await asyncio.gather(
                *(node.promise(VoteRecord(height, 0, digest)) for node, digest in zip(nodes, digests, strict=True))
            )
            winners = [digest for digest, answer in zip(digests, answers, strict=True) if answer is None]
            assert len(winners) == 1
            assert {answer.vote for answer in answers if answer is not None} == set(winners)
        for node in nodes:
            node.close()

    asyncio.run(story())


def test_a_killed_or_frozen_etcd_forgets_nothing(etcd: EtcdCluster) -> None:
    async def story() -> None:
        votes = EtcdVotes([etcd.urls[0]], "test", CHAIN, VALIDATOR)
        assert await _until_available(votes, VoteRecord(1, 0, X)) is None
        etcd.stop()
        with pytest.raises(VotesUnavailable, match="127.0.0.1"):
            await votes.promise(VoteRecord(1, 1))
        etcd.start()
        assert await _until_available(votes, VoteRecord(1, 1)) is None
        etcd.signal(signal.SIGSTOP)
        with pytest.raises(VotesUnavailable, match="no reply"):
            await votes.promise(VoteRecord(1, 2, Y))
        etcd.signal(signal.SIGCONT)
        assert await _until_available(votes, VoteRecord(1, 2, Y)) is None
        fresh = EtcdVotes([etcd.urls[0]], "test", CHAIN, VALIDATOR)
        assert await fresh.promise(VoteRecord(1, 2, X)) == VoteRecord(1, 2, Y)
        votes.close()
        fresh.close()

    asyncio.run(story())


def test_a_value_that_is_no_record_stops_the_votes(etcd: EtcdCluster) -> None:
    async def story() -> None:
        votes = EtcdVotes([etcd.urls[0]], "test", CHAIN, VALIDATOR)
        await _until_available(votes, VoteRecord(1))
        key = f"/test/0x{CHAIN.hex()}/0x{VALIDATOR.hex()}"
        ctl = shutil.which("etcdctl")
        if ctl is None:
            pytest.skip("etcdctl is not installed")
        environment = {**os.environ, "ETCDCTL_API": "3"}
        command = (ctl, "--endpoints", etcd.urls[0], "put", key, "junk")
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=subprocess.DEVNULL)
        assert await process.wait() == 0
        with pytest.raises(VotesUnavailable, match="not a vote record"):
            await votes.promise(VoteRecord(2))
        votes.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    "reply",
    [
        b'{"header":{"revision":"x"},"succeeded":true}',
        b'{"header":{"revision":null},"succeeded":true}',
        b'{"header":{},"responses":[{"response_range":{"kvs":[{"value":"AA==","mod_revision":"x"}]}}]}',
        b'{"succeeded":true}',
    ],
)
def test_a_reply_of_another_service_allows_no_vote(reply: bytes) -> None:
    async def story(url: str) -> None:
        votes = EtcdVotes([url], "test", CHAIN, VALIDATOR)
        with pytest.raises(VotesUnavailable):
            await votes.promise(VoteRecord(5, 0, X))
        votes.close()

    with hostile_node() as node:
        node.body = reply
        asyncio.run(story(node.url))
