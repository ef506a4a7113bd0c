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
from ophion.testing.ports import free_ports

ETCD = shutil.which(os.environ.get("ETCD", ""))
CHAIN, VALIDATOR, OTHER = b"\x0c" * 32, b"\x0a" * 20, b"\x0b" * 20
X, Y = b"\x01" * 32, b"\x02" * 32

pytestmark = pytest.mark.skipif(ETCD is None, reason="ETCD does not name an etcd program")


class Etcd:
    """A cluster of one member, which can be stopped and started again."""

    def __init__(self, path: Path) -> None:
        self.port, self._peer_port = free_ports(2)
        self.url = f"http://127.0.0.1:{self.port}"
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        client, peer = self.url, f"http://127.0.0.1:{self._peer_port}"
        assert ETCD is not None
        self._process = subprocess.Popen(
            [
                ETCD,
                f"--data-dir={self._path}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}",
                f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[Etcd]:
    cluster = Etcd(tmp_path / "etcd")
    cluster.start()
    try:
        yield cluster
    finally:
        cluster.stop()


async def _until_available(votes: EtcdVotes, record: VoteRecord) -> VoteRecord | None:
    for _ in range(200):
        try:
            return await votes.promise(record)
        except VotesUnavailable:
            await asyncio.sleep(0.05)
    raise AssertionError("etcd did not start")


def test_two_nodes_agree_on_one_record(etcd: Etcd) -> None:
    async def story() -> None:
        one = EtcdVotes(["http://127.0.0.1:1", etcd.url], "test", CHAIN, VALIDATOR)
        two = EtcdVotes([etcd.url], "/test/", CHAIN, VALIDATOR)
        assert await _until_available(one, VoteRecord(5, 0, X)) is None
        assert await two.promise(VoteRecord(5, 0, Y)) == VoteRecord(5, 0, X)
        assert await two.promise(VoteRecord(5, 0, X)) is None
        assert await two.promise(VoteRecord(5, 1)) is None
        assert await one.promise(VoteRecord(5, 0, X, 0, X)) == VoteRecord(5, 1)
        assert await one.promise(VoteRecord(6, 0, Y)) is None
        assert await two.promise(VoteRecord(5, 2)) == VoteRecord(6, 0, Y)
        stranger = EtcdVotes([etcd.url], "test", CHAIN, OTHER)
        assert await stranger.promise(VoteRecord(1, 0, Y)) is None, "each key has its own record"
        for votes in (one, two, stranger):
            votes.close()

    asyncio.run(story())


def test_of_many_nodes_one_wins_each_round(etcd: Etcd) -> None:
    async def story() -> None:
        nodes = [EtcdVotes([etcd.url], "test", CHAIN, VALIDATOR) for _ in range(4)]
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


def test_a_killed_or_frozen_etcd_forgets_nothing(etcd: Etcd) -> None:
    async def story() -> None:
        votes = EtcdVotes([etcd.url], "test", CHAIN, VALIDATOR)
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
        fresh = EtcdVotes([etcd.url], "test", CHAIN, VALIDATOR)
        assert await fresh.promise(VoteRecord(1, 2, X)) == VoteRecord(1, 2, Y)
        votes.close()
        fresh.close()

    asyncio.run(story())


def test_a_value_that_is_no_record_stops_the_votes(etcd: Etcd) -> None:
    async def story() -> None:
        votes = EtcdVotes([etcd.url], "test", CHAIN, VALIDATOR)
        await _until_available(votes, VoteRecord(1))
        key = f"/test/0x{CHAIN.hex()}/0x{VALIDATOR.hex()}"
        ctl = shutil.which("etcdctl")
        if ctl is None:
            pytest.skip("etcdctl is not installed")
        environment = {**os.environ, "ETCDCTL_API": "3"}
        command = (ctl, "--endpoints", etcd.url, "put", key, "junk")
        process = await asyncio.create_subprocess_exec(*command, env=environment, stdout=subprocess.DEVNULL)
        assert await process.wait() == 0
        with pytest.raises(VotesUnavailable, match="not a vote record"):
            await votes.promise(VoteRecord(2))
        votes.close()

    asyncio.run(story())
