"""Tests votes in a real etcd. ETCD names the program."""

from __future__ import annotations

import asyncio
import base64
import datetime
import ipaddress
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ophion.consensus.bft.vote_record import VoteRecord
from ophion.producer.etcd_vote_store import EtcdVoteStore
from ophion.producer.options import ConsensusConfig
from ophion.producer.shared_vote_store import VotesUnavailable
from ophion.producer.vote_store_address import read_vote_store
from ophion.runtime.http_client import HttpClient
from ophion.runtime.options import problems_of
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


async def _until_available(votes: EtcdVoteStore, record: VoteRecord) -> VoteRecord | None:
    for _ in range(200):
        try:
            return await votes.promise(record)
        except VotesUnavailable:
            await asyncio.sleep(0.05)
    raise AssertionError("etcd did not start")


def test_two_nodes_agree_on_one_record(etcd: EtcdCluster) -> None:
    async def story() -> None:
        one = EtcdVoteStore(["http://127.0.0.1:1", etcd.urls[0]], "test", CHAIN, VALIDATOR)
        two = EtcdVoteStore([etcd.urls[0]], "/test/", CHAIN, VALIDATOR)
        assert await _until_available(one, VoteRecord(5, 0, X)) is None
        assert await two.promise(VoteRecord(5, 0, Y)) == VoteRecord(5, 0, X)
        assert await two.promise(VoteRecord(5, 0, X)) is None
        assert await two.promise(VoteRecord(5, 1)) is None
        assert await one.promise(VoteRecord(5, 0, X, 0, X)) == VoteRecord(5, 1)
        assert await one.promise(VoteRecord(6, 0, Y)) is None
        assert await two.promise(VoteRecord(5, 2)) == VoteRecord(6, 0, Y)
        other_votes = EtcdVoteStore([etcd.urls[0]], "test", CHAIN, OTHER)
        assert await other_votes.promise(VoteRecord(1, 0, Y)) is None, "each key has its own record"
        for votes in (one, two, other_votes):
            votes.close()

    asyncio.run(story())


def test_a_block_is_stored_with_its_record(etcd: EtcdCluster) -> None:
    async def story() -> None:
        one, two = (EtcdVoteStore(etcd.urls, "test", CHAIN, VALIDATOR) for _ in range(2))
        await _until_available(one, VoteRecord(1))
        assert await two.block() is None
        block = bytes(range(256)) * 3900
        assert await one.promise(VoteRecord(5, 0, X), block) is None
        assert await two.promise(VoteRecord(5, 0, Y), b"other") == VoteRecord(5, 0, X)
        assert await two.block() == block
        assert await two.promise(VoteRecord(6, 0, Y), b"") is None
        assert await one.block() is None, "a block that was too large"
        one.close()
        two.close()

    asyncio.run(story())


def test_a_proof_is_stored_with_the_record_that_names_it(etcd: EtcdCluster) -> None:
    async def story() -> None:
        one, two = (EtcdVoteStore(etcd.urls, "test", CHAIN, VALIDATOR) for _ in range(2))
        await _until_available(one, VoteRecord(1))
        assert await two.proof() is None
        assert await one.promise(VoteRecord(5, 0, X, 0, X), proof=b"of round 0") is None
        assert one.kept_proof == await two.proof() == b"of round 0"
        assert await two.promise(VoteRecord(5, 0, X, 0, X), proof=b"the same proof") is None
        assert two.kept_proof is None, "the record was stored, and the proof of this node was not"
        assert await one.promise(VoteRecord(5, 2, Y, 2, Y), proof=b"of round 2") is None
        assert await two.promise(VoteRecord(5, 1, X, 1, X), proof=b"of round 1") == VoteRecord(5, 2, Y, 2, Y)
        assert await two.promise(VoteRecord(5, 3, X, 0, X), proof=b"of round 0") is None
        assert await two.proof() == b"of round 2", "the record still names it"
        assert two.kept_proof is None
        one.close()
        two.close()

    asyncio.run(story())


def test_of_many_nodes_one_wins_each_round(etcd: EtcdCluster) -> None:
    async def story() -> None:
        nodes = [EtcdVoteStore([etcd.urls[0]], "test", CHAIN, VALIDATOR) for _ in range(4)]
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
        votes = EtcdVoteStore([etcd.urls[0]], "test", CHAIN, VALIDATOR)
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
        fresh = EtcdVoteStore([etcd.urls[0]], "test", CHAIN, VALIDATOR)
        assert await fresh.promise(VoteRecord(1, 2, X)) == VoteRecord(1, 2, Y)
        votes.close()
        fresh.close()

    asyncio.run(story())


def test_a_value_that_is_no_record_stops_the_votes(etcd: EtcdCluster) -> None:
    async def story() -> None:
        votes = EtcdVoteStore([etcd.urls[0]], "test", CHAIN, VALIDATOR)
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


def test_an_etcd_that_has_lost_the_record_stops_the_votes(etcd: EtcdCluster) -> None:
    async def story() -> None:
        votes = EtcdVoteStore([etcd.urls[0]], "test", CHAIN, VALIDATOR)
        await _until_available(votes, VoteRecord(5, 1, X))
        key = base64.b64encode(f"/test/0x{CHAIN.hex()}/0x{VALIDATOR.hex()}".encode()).decode()
        client = HttpClient(etcd.urls[0])
        removal = json.dumps({"key": key}).encode()
        reply = await client.request("POST", "/v3/kv/deleterange", removal, {"Content-Type": "application/json"})
        assert reply.status == 200
        for wanted in (VoteRecord(5, 1, Y), VoteRecord(6, 0, Y)):
            with pytest.raises(VotesUnavailable, match="etcd has lost votes: .* height=5 .* no record; stop all nodes"):
                await votes.promise(wanted)
        other = EtcdVoteStore([etcd.urls[0]], "test", CHAIN, VALIDATOR)
        assert await other.promise(VoteRecord(4, 0, X)) is None
        with pytest.raises(VotesUnavailable, match="etcd has lost votes: .* height=5 .* height=4"):
            await votes.promise(VoteRecord(6, 0, Y))
        for one in (votes, other, client):
            one.close()

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
        votes = EtcdVoteStore([url], "test", CHAIN, VALIDATOR)
        with pytest.raises(VotesUnavailable):
            await votes.promise(VoteRecord(5, 0, X))
        votes.close()

    with hostile_node() as node:
        node.body = reply
        asyncio.run(story(node.url))


@pytest.mark.parametrize("read", ["block", "proof"])
def test_a_value_that_cannot_be_read_is_one_error(read: str) -> None:
    async def story(url: str) -> None:
        votes = EtcdVoteStore([url], "test", CHAIN, VALIDATOR)
        with pytest.raises(VotesUnavailable, match="cannot be read"):
            await getattr(votes, read)()
        votes.close()

    with hostile_node() as node:
        node.body = b'{"header":{},"succeeded":true,"responses":[{"response_range":{"kvs":[{"value":"A"}]}}]}'
        asyncio.run(story(node.url))


def _certificate(path: Path) -> tuple[Path, Path]:
    """Write a self-signed certificate of 127.0.0.1, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "etcd of a test")])
    now = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=36500))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    public, private = path / "cert.pem", path / "key.pem"
    public.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return public, private


@pytest.mark.skipif(ETCD is None, reason=REASON)
def test_votes_over_tls_need_the_certificate_of_the_client(tmp_path: Path) -> None:
    certificate, key = _certificate(tmp_path)
    options = (
        f"--cert-file={certificate}",
        f"--key-file={key}",
        f"--trusted-ca-file={certificate}",
        "--client-cert-auth",
    )

    async def story(etcd: EtcdCluster) -> None:
        store = read_vote_store("etcds://127.0.0.1:1")
        config = ConsensusConfig(
            vote_store=store,
            vote_store_ca_file=certificate,
            vote_store_certificate_file=certificate,
            vote_store_key_file=key,
        )
        assert problems_of(config) == []
        votes = EtcdVoteStore(etcd.urls, "test", CHAIN, VALIDATOR, config.vote_store_tls())
        assert await _until_available(votes, VoteRecord(1, 0, X)) is None
        assert await votes.promise(VoteRecord(1, 0, Y)) == VoteRecord(1, 0, X)
        votes.close()
        without = ConsensusConfig(vote_store=store, vote_store_ca_file=certificate)
        uncertified = EtcdVoteStore(etcd.urls, "test", CHAIN, VALIDATOR, without.vote_store_tls())
        with pytest.raises(VotesUnavailable):
            await uncertified.promise(VoteRecord(2))
        distrusting = EtcdVoteStore(
            etcd.urls, "test", CHAIN, VALIDATOR, ConsensusConfig(vote_store=store).vote_store_tls()
        )
        with pytest.raises(VotesUnavailable, match="certificate"):
            await distrusting.promise(VoteRecord(2))

    with EtcdCluster(tmp_path / "etcd", tls=options) as etcd:
        asyncio.run(story(etcd))
