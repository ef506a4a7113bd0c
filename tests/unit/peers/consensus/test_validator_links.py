"""Reports of connections: which messages are relayed, and what happens when a connection is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeAlias

import pytest

from ophion.consensus.bft.messages import BftMessage, Proposal
from ophion.native.crypto import PrivateKey
from ophion.peers.consensus.identity import IdentityProtocol
from ophion.peers.consensus.validator_links import LOSS_DELAY_S, MAX_LINKS, NEW_DELAY_S
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.primitives import rlp
from ophion.primitives.types import Address
from ophion.testing.memory_connection import Host, MemoryConnection
from tests.unit.peers.consensus.circle import Party, meet, told
from tests.unit.producer.authority import KEYS, running

SendAll: TypeAlias = Callable[[BftMessage, Collection[Address]], None]
BOTH = pytest.mark.parametrize("engine", ["ibft2", "qbft"])


def _duplicates(parties: list[Party]) -> int:
    return sum(party.driver.counts.duplicate for party in parties)


@BOTH
def test_nothing_is_relayed_when_all_validators_are_connected(tmp_path: Path, engine: str) -> None:
    async def story(parties: list[Party]) -> None:
        async with running(*(party.driver for party in parties)):
            meet(parties)
            await asyncio.sleep(NEW_DELAY_S + 1)
            relayed, heights = _duplicates(parties), [party.node.queries.head_number for party in parties]
            await asyncio.sleep(20)
        assert _duplicates(parties) == relayed
        assert min(party.node.queries.head_number for party in parties) >= min(heights) + 9

    told(tmp_path, engine, story, reports=True)


def test_nothing_is_relayed_when_validator_keys_are_not_node_keys(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        hosts = []
        for index, party in enumerate(parties):
            node = PrivateKey(bytes([101 + index]) * 32)
            identity = IdentityProtocol(party.validators, bytes(32), node.public_key, KEYS[index])
            hosts.append(Host(node, [*party.protocols, identity], party.host.clock))
        async with running(*(party.driver for party in parties)):
            _ = [MemoryConnection(one, other) for place, one in enumerate(hosts) for other in hosts[:place]]
            await asyncio.sleep(NEW_DELAY_S + 1)
            relayed = _duplicates(parties)
            await asyncio.sleep(20)
        assert _duplicates(parties) == relayed
        assert min(party.node.queries.head_number for party in parties) >= 10

    told(tmp_path, "qbft", story)


@BOTH
def test_a_ring_of_validators_decides_by_relays(tmp_path: Path, engine: str) -> None:
    async def story(parties: list[Party]) -> None:
        async with running(*(party.driver for party in parties)):
            await asyncio.sleep(0.1)
            _ = [MemoryConnection(parties[index].host, parties[(index + 1) % 4].host) for index in range(4)]
            await asyncio.sleep(30)
        assert min(party.node.queries.head_number for party in parties) >= 6
        first = parties[0].validators
        across = parties[2].address
        assert {one.peer.validator_address for one in first._targets_for(across)} == set()
        assert {one.peer.validator_address for one in first._targets_for(parties[1].address)} == {parties[3].address}

    told(tmp_path, engine, story, reports=True)


def test_a_lost_connection_is_reported_and_missed_messages_follow(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        first, second, third = parties[:3]
        async with running(first.driver, third.driver):
            links = {
                pair: MemoryConnection(parties[pair[0]].host, parties[pair[1]].host)
                for pair in ((0, 1), (0, 2), (1, 2))
            }
            for link in links.values():
                await link.peers()
            await asyncio.sleep(NEW_DELAY_S + 0.5)
            third_peer = first.host.peers.by_address(third.address)
            assert third_peer is not None
            assert first.validators.links.reaches(third_peer, second.address)
            # the second validator votes, but its message does not reach the third
            vote = second.driver._factory.prepare(1, 0, bytes(32))
            second.validators.send(vote, first.address)
            await asyncio.sleep(0.2)
            assert second.address not in third.driver._machine.liveness.received_at
            peer = third.host.peers.by_address(second.address)
            assert peer is not None
            peer.disconnect(DisconnectReason.REQUESTED)
            await asyncio.sleep(LOSS_DELAY_S + 3)
            assert not first.validators.links.reaches(third_peer, second.address)
            assert second.address in third.driver._machine.liveness.received_at

    told(tmp_path, "qbft", story, reports=True)


@BOTH
def test_a_proposal_that_its_author_sends_to_one_validator_reaches_the_others(tmp_path: Path, engine: str) -> None:
    async def story(parties: list[Party]) -> None:
        for party in parties:
            send_all = party.validators.multicast

            def send_some(message: BftMessage, validators: Collection[Address], send_all: SendAll = send_all) -> None:
                others = sorted(address for address in validators if address != message.author)
                send_all(message, others[:1] if isinstance(message, Proposal) else validators)

            party.validators.multicast = send_some  # type: ignore[method-assign]
        async with running(*(party.driver for party in parties)):
            meet(parties)
            await asyncio.sleep(30)
        chain, engine_ = parties[0].node.chain, parties[0].driver.engine
        assert chain.head.number >= 10
        headers = [chain.canonical(number) for number in range(2, chain.head.number + 1)]
        assert {engine_.validators.extra(header.header).round for header in headers if header is not None} == {0}

    told(tmp_path, engine, story, reports=True)


def test_a_malformed_report_ends_the_connection_and_a_flood_of_reports_does_not_count(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        first, second = parties
        (meeting,) = meet(parties)
        await meeting.peers()
        peer = second.host.peers.by_address(first.address)
        seen = first.host.peers.by_address(second.address)
        assert peer is not None
        assert seen is not None
        report = rlp.encode([b"\x07" * 20])
        peer.send("vid", 1, report)
        await asyncio.sleep(0.1)
        assert first.validators.links.reaches(seen, b"\x07" * 20)
        for _ in range(40):
            peer.send("vid", 1, report)
        await asyncio.sleep(0.1)
        assert not first.validators.links.reaches(seen, b"\x07" * 20)
        await asyncio.sleep(30)
        peer.send("vid", 1, rlp.encode([b"\x07" * 19]))
        await asyncio.sleep(3)
        assert not peer.is_open

    told(tmp_path, "qbft", story, nodes=2, reports=True)


def test_a_report_is_limited() -> None:
    from ophion.errors import DecodeError
    from ophion.peers.consensus.validator_links import MAX_REPORT_BYTES, _decode_report

    report = rlp.encode([bytes(20)] * MAX_LINKS)
    assert len(report) <= MAX_REPORT_BYTES
    assert len(_decode_report(report)) == MAX_LINKS
    with pytest.raises(DecodeError):
        _decode_report(rlp.encode([bytes(20)] * (MAX_LINKS + 1)))


def _reports(party: Party) -> int:
    """Return the number of reports that a node has sent."""
    return party.host.traffic.sent["vid", "links", 1]


def test_connections_of_unknown_peers_cause_no_reports(tmp_path: Path) -> None:
    """Otherwise one unknown peer uses up the rate limit of reports, and validators relay everything again."""

    async def story(parties: list[Party]) -> None:
        first, second, unknown = parties
        async with running(first.driver, second.driver):
            await MemoryConnection(first.host, second.host).peers()
            await asyncio.sleep(NEW_DELAY_S + 1)
            before = _reports(first), _reports(second)
            for _ in range(30):
                connection = MemoryConnection(unknown.host, first.host)
                near, _ = await connection.peers()
                await asyncio.sleep(NEW_DELAY_S + 0.2)
                near.disconnect(DisconnectReason.REQUESTED)
                await connection.wait_closed()
                await asyncio.sleep(LOSS_DELAY_S + 0.1)
            assert (_reports(first), _reports(second)) == before

    told(tmp_path, "qbft", story, nodes=3, reports=True, validators=2)


def test_unknown_peers_get_neither_reports_nor_missed_messages(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        first, second, unknown = parties
        async with running(first.driver, second.driver):
            await MemoryConnection(first.host, second.host).peers()
            near, _ = await MemoryConnection(unknown.host, first.host).peers()
            await asyncio.sleep(20)
            for _ in range(10):
                near.send("vid", 1, rlp.encode([first.address, second.address]))
                near.send("vid", 1, rlp.encode([]))
            await asyncio.sleep(0.1)
            assert near.is_open
        assert not [key for key in unknown.host.traffic.received if key[0] in ("vid", "istanbul")]

    told(tmp_path, "qbft", story, nodes=3, reports=True, validators=2)


def test_a_validator_that_reconnects_all_the_time_causes_few_reports(tmp_path: Path) -> None:
    """The reports stay below the rate limit of their receivers, which drop reports above it."""

    async def story(parties: list[Party]) -> None:
        first, second, third = parties
        async with running(*(party.driver for party in parties)):
            await MemoryConnection(first.host, second.host).peers()
            await asyncio.sleep(NEW_DELAY_S + 1)
            before = _reports(first)
            for _ in range(60):
                connection = MemoryConnection(third.host, first.host)
                near, _ = await connection.peers()
                await asyncio.sleep(NEW_DELAY_S + 0.1)
                near.disconnect(DisconnectReason.REQUESTED)
                await connection.wait_closed()
                await asyncio.sleep(LOSS_DELAY_S + 0.05)
            # a report goes to each of two peers
            assert _reports(first) - before <= 2 * (10 + 60)
            await asyncio.sleep(5)
            peer = second.host.peers.by_address(first.address)
            assert peer is not None
            assert second.validators.links.reaches(peer, second.address), "the last report has arrived"
            assert not second.validators.links.reaches(peer, third.address)

    told(tmp_path, "qbft", story, nodes=3, reports=True)


def test_connections_to_a_new_validator_are_reported(tmp_path: Path) -> None:
    everyone = ["0x" + key.address.hex() for key in KEYS[:5]]
    forks = {"transitions": {"qbft": [{"block": 6, "validatorselectionmode": "blockheader", "validators": everyone}]}}

    async def story(parties: list[Party]) -> None:
        async with running(*(party.driver for party in parties)):
            meet(parties)
            await asyncio.sleep(40)
            relayed = _duplicates(parties)
            await asyncio.sleep(20)
            assert len(parties[0].driver.validators) == 5
        assert _duplicates(parties) == relayed
        first, second = parties[:2]
        peer = first.host.peers.by_address(second.address)
        assert peer is not None
        assert first.validators.links.reaches(peer, parties[4].address)

    told(tmp_path, "qbft", story, nodes=5, reports=True, validators=4, forks=forks)


def test_a_report_stops_at_its_limit_of_items() -> None:
    """Each step of a connection reads up to eight messages, so one report may take a few milliseconds at most."""
    from ophion.peers.consensus.validator_links import MAX_REPORT_BYTES, _decode_report

    with pytest.raises(rlp.TooManyItems):
        _decode_report(rlp.list_of([b"\xc0" * (MAX_REPORT_BYTES - 8)]))
