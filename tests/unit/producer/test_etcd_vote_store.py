"""Tests votes in a real etcd. ETCD names the program."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from ophion.consensus.bft.vote_record import VoteRecord
from ophion.producer.etcd_messages import encode_range
from ophion.producer.etcd_vote_store import EtcdVoteStore
from ophion.producer.options import ConsensusConfig
from ophion.producer.shared_vote_store import VotesUnavailable
from ophion.producer.vote_store_address import read_vote_store
from ophion.runtime.grpc_client import GrpcClient
from ophion.runtime.options import problems_of
from tests.faults.etcd_cluster import ETCD, REASON, EtcdCluster
from tests.unit.hostile_node import hostile_node
from tests.unit.http2_frames import Http2Server, grpc_failure, grpc_reply
from tests.unit.self_signed_certificate import self_signed_certificate

CHAIN, VALIDATOR, OTHER = b"\x0c" * 32, b"\x0a" * 20, b"\x0b" * 20
X, Y = b"\x01" * 32, b"\x02" * 32
AT_REVISION_5, SUCCEEDED = b"\x0a\x02\x18\x05", b"\x10\x01"
"""Header and result of the reply to a transaction."""


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


async def _until_answered(votes: EtcdVoteStore, record: VoteRecord) -> VoteRecord | None:
    """Store a record as soon as the server accepts connections."""
    for _ in range(200):
        try:
            return await votes.promise(record)
        except VotesUnavailable as error:
            if "etcd has lost votes" in str(error):
                raise
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
        key = f"/test/0x{CHAIN.hex()}/0x{VALIDATOR.hex()}".encode()
        client = GrpcClient(etcd.urls[0], None, 10, 10_000)
        await client.call("/etcdserverpb.KV/Put", encode_range(key) + b"\x12\x04junk")
        client.disconnect()
        with pytest.raises(VotesUnavailable, match="not a vote record"):
            await votes.promise(VoteRecord(2))
        votes.close()

    asyncio.run(story())


def test_an_etcd_that_has_lost_the_record_stops_the_votes(etcd: EtcdCluster) -> None:
    async def story() -> None:
        votes, later = (EtcdVoteStore([etcd.urls[0]], "test", CHAIN, VALIDATOR) for _ in range(2))
        for one in (votes, later):
            await _until_available(one, VoteRecord(5, 1, X))
        client = GrpcClient(etcd.urls[0], None, 10, 10_000)
        key = f"/test/0x{CHAIN.hex()}/0x{VALIDATOR.hex()}".encode()
        await client.call("/etcdserverpb.KV/DeleteRange", encode_range(key))
        for wanted in (VoteRecord(5, 1, Y), VoteRecord(6, 0, Y)):
            with pytest.raises(VotesUnavailable, match="etcd has lost votes: .* height=5 .* no record; stop all nodes"):
                await votes.promise(wanted)
        other = EtcdVoteStore([etcd.urls[0]], "test", CHAIN, VALIDATOR)
        assert await other.promise(VoteRecord(4, 0, X)) is None
        with pytest.raises(VotesUnavailable, match="etcd has lost votes: .* height=5 .* height=4"):
            await later.promise(VoteRecord(6, 0, Y))
        with pytest.raises(VotesUnavailable, match="etcd has lost votes: .* height=5 .* no record"):
            await votes.promise(VoteRecord(6, 0, Y))
        client.disconnect()
        for one in (votes, later, other):
            one.close()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("backed_up", "lost"),
    [
        (VoteRecord(5, 1), VoteRecord(5, 1, X)),
        (VoteRecord(5, 0, X), VoteRecord(5, 1, X)),
        (VoteRecord(5, 1, X), VoteRecord(5, 1, X, 1, X)),
        (VoteRecord(5, 1, X), VoteRecord(6, 0, X)),
    ],
)
def test_an_etcd_restored_from_a_backup_stops_the_votes(
    etcd: EtcdCluster, backed_up: VoteRecord, lost: VoteRecord
) -> None:
    async def story() -> None:
        votes = EtcdVoteStore([etcd.urls[0]], "test", CHAIN, VALIDATOR)
        assert await _until_available(votes, backed_up) is None
        etcd.back_up()
        assert await _until_available(votes, lost) is None
        etcd.restore()
        with pytest.raises(VotesUnavailable, match="etcd has lost votes"):
            await _until_answered(votes, VoteRecord(lost.height, lost.round, Y))
        fresh = EtcdVoteStore([etcd.urls[0]], "test", CHAIN, VALIDATOR)
        assert await fresh.promise(VoteRecord(7, 0, Y)) is None, "the other node has not seen the lost vote"
        with pytest.raises(VotesUnavailable, match="etcd has lost votes"):
            await votes.promise(VoteRecord(8))
        votes.close()
        fresh.close()

    asyncio.run(story())


def test_a_restored_etcd_that_has_reached_the_same_revision_stops_the_votes(etcd: EtcdCluster) -> None:
    async def story() -> None:
        votes, other = (EtcdVoteStore([etcd.urls[0]], "test", CHAIN, VALIDATOR) for _ in range(2))
        assert await _until_available(votes, VoteRecord(5, 1)) is None
        etcd.back_up()
        assert await _until_available(votes, VoteRecord(5, 1, X)) is None
        etcd.restore()
        assert await _until_available(other, VoteRecord(5, 1, Y)) is None
        with pytest.raises(VotesUnavailable, match="etcd has lost votes: .* and etcd has height=5 round=1"):
            await votes.promise(VoteRecord(5, 2))
        votes.close()
        other.close()

    asyncio.run(story())


def test_a_restored_etcd_with_a_later_record_stops_the_votes(etcd: EtcdCluster) -> None:
    async def story() -> None:
        stores = [EtcdVoteStore([etcd.urls[0]], "test", CHAIN, key) for key in (VALIDATOR, VALIDATOR, OTHER)]
        votes, partner, other = stores
        assert await _until_available(votes, VoteRecord(5, 0, X)) is None
        etcd.back_up()
        assert await _until_available(votes, VoteRecord(5, 1)) is None
        assert await votes.promise(VoteRecord(5, 2)) is None
        etcd.restore()
        assert await _until_available(partner, VoteRecord(6, 0, X)) is None
        for round_ in range(5):
            assert await other.promise(VoteRecord(5, round_, X)) is None
        with pytest.raises(VotesUnavailable, match="etcd has lost votes: the record's revision was [0-9]+ and is"):
            await votes.promise(VoteRecord(7))
        for one in stores:
            one.close()

    asyncio.run(story())


def test_a_restored_etcd_that_lacks_only_other_keys_stops_the_votes(etcd: EtcdCluster) -> None:
    """A vote of a partner, which this node has not read, may be missing too."""

    async def story() -> None:
        votes, other = (EtcdVoteStore([etcd.urls[0]], "test", CHAIN, key) for key in (VALIDATOR, OTHER))
        assert await _until_available(votes, VoteRecord(5, 0, X)) is None
        etcd.back_up()
        for round_ in range(5):
            assert await _until_available(other, VoteRecord(5, round_, X)) is None
        assert await votes.promise(VoteRecord(5, 0, Y)) == VoteRecord(5, 0, X), "reads the revision of the cluster"
        etcd.restore()
        with pytest.raises(VotesUnavailable, match="etcd has lost votes: its revision was [0-9]+ and is [0-9]+"):
            await _until_answered(votes, VoteRecord(5, 1))
        votes.close()
        other.close()

    asyncio.run(story())


def _play(server: Http2Server, story: Callable[[EtcdVoteStore], Awaitable[None]]) -> None:
    async def main(url: str) -> None:
        votes = EtcdVoteStore([url], "test", CHAIN, VALIDATOR)
        await story(votes)
        votes.close()

    server.play(main)


@pytest.mark.parametrize(
    "message",
    [b"", b"junk", SUCCEEDED, b"\x0a\x00" + SUCCEEDED, b"\x0a\x02\x18\x00" + SUCCEEDED, AT_REVISION_5],
    ids=["empty", "no message", "no header", "empty header", "no revision", "no key"],
)
def test_a_reply_of_another_service_allows_no_vote(message: bytes) -> None:
    async def story(votes: EtcdVoteStore) -> None:
        with pytest.raises(VotesUnavailable):
            await votes.promise(VoteRecord(5, 0, X))

    _play(Http2Server(lambda stream, _: grpc_reply(stream, message)), story)


def test_a_server_without_grpc_allows_no_vote() -> None:
    async def story(url: str) -> None:
        votes = EtcdVoteStore([url], "test", CHAIN, VALIDATOR)
        with pytest.raises(VotesUnavailable, match="does not speak HTTP/2"):
            await votes.promise(VoteRecord(5, 0, X))
        votes.close()

    with hostile_node() as node:
        asyncio.run(story(node.url))


def test_a_long_reply_allows_no_vote() -> None:
    async def story(votes: EtcdVoteStore) -> None:
        with pytest.raises(VotesUnavailable, match="reply is too long"):
            await votes.promise(VoteRecord(5, 0, X))

    reply = AT_REVISION_5 + SUCCEEDED
    _play(Http2Server(lambda stream, _: grpc_reply(stream, reply + bytes(2 * 1024 * 1024))), story)


def test_an_error_of_one_server_leads_to_the_next() -> None:
    failing = Http2Server(lambda stream, _: grpc_failure(stream, "14", "etcdserver: no leader"))
    working = Http2Server(lambda stream, _: grpc_reply(stream, AT_REVISION_5 + SUCCEEDED))

    async def story(failing_url: str) -> None:
        listening = await asyncio.start_server(working.serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        votes = EtcdVoteStore([failing_url, url], "test", CHAIN, VALIDATOR)
        for height in range(1, 4):
            assert await votes.promise(VoteRecord(height, 0, X)) is None
        votes.close()
        listening.close()
        alone = EtcdVoteStore([failing_url], "test", CHAIN, VALIDATOR)
        with pytest.raises(VotesUnavailable, match=r"no leader \(gRPC status 14\)"):
            await alone.promise(VoteRecord(9))
        alone.close()

    failing.play(story)
    assert (len(failing.messages), len(working.messages)) == (2, 3)


@pytest.mark.skipif(ETCD is None, reason=REASON)
def test_votes_over_tls_need_the_certificate_of_the_client(tmp_path: Path) -> None:
    certificate, key = self_signed_certificate(tmp_path)
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
