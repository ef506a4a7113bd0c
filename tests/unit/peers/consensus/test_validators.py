"""The gossip of a validator reaches the right validators the right number of times."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ophion.consensus.bft.messages import Prepare, RoundChange
from ophion.peers.disconnect_reasons import DisconnectReason
from tests.unit.peers.consensus.circle import Party, meet, told
from tests.unit.producer.authority import KEYS, running

BOTH = pytest.mark.parametrize("engine", ["ibft2", "qbft"])


@BOTH
def test_connections_are_known_by_address_and_client(tmp_path: Path, engine: str) -> None:
    async def story(parties: list[Party]) -> None:
        first = parties[0]
        async with running(first.driver):
            await asyncio.sleep(0.1)
            meetings = meet(parties)
            for meeting in meetings:
                await meeting.peers()
            assert set(first.validators.connected()) == {party.address for party in parties[1:]}
            assert sorted(first.validators.clients()) == ["Ophion/1", "Ophion/2", "Ophion/3"]
            assert first.validators.client_of(parties[1].address) == "Ophion/1"
            peer = first.host.peers.by_address(parties[1].address)
            assert peer is not None
            peer.disconnect(DisconnectReason.REQUESTED)
            await asyncio.sleep(3)
            assert set(first.validators.connected()) == {party.address for party in parties[2:]}
            assert first.validators.client_of(parties[1].address) is None

    told(tmp_path, engine, story)


@BOTH
def test_who_is_not_connected_directly_hears_by_others(tmp_path: Path, engine: str) -> None:
    """In a ring, each validator is connected to only two others. A quorum needs three of four, so validators must relay
    messages.
    """

    async def story(parties: list[Party]) -> None:
        from ophion.testing.memory_connection import MemoryConnection

        async with running(*(party.driver for party in parties)):
            await asyncio.sleep(0.1)
            _ = [MemoryConnection(parties[index].host, parties[(index + 1) % 4].host) for index in range(4)]
            await asyncio.sleep(30)
        assert min(party.node.queries.head_number for party in parties) >= 6
        assert all(party.driver.counts.duplicate > 0 for party in parties)

    told(tmp_path, engine, story)


@BOTH
def test_a_peer_that_connects_late_gets_earlier_messages(tmp_path: Path, engine: str) -> None:
    async def story(parties: list[Party]) -> None:
        async with running(*(party.driver for party in parties)):
            # without peers, each validator changes rounds, and its rounds get longer and longer
            await asyncio.sleep(60)
            assert all(party.node.queries.head_number == 0 for party in parties)
            meet(parties)
            await asyncio.sleep(8)
            assert min(party.node.queries.head_number for party in parties) >= 1

    told(tmp_path, engine, story)


@BOTH
def test_a_message_of_a_later_height_wakes_the_synchroniser(tmp_path: Path, engine: str) -> None:
    async def story(parties: list[Party]) -> None:
        first, second = parties
        async with running(first.driver):
            (meeting,) = meet(parties)
            await meeting.peers()
            await asyncio.sleep(0.1)
            vote = second.driver._factory.prepare(9, 0, bytes(32))
            assert isinstance(vote, Prepare)
            second.validators.send(vote, first.address)
            await asyncio.sleep(0.1)
        assert first.wanted == [(second.address, 8)]

    told(tmp_path, engine, story, nodes=2)


@BOTH
def test_messages_of_another_protocol_are_ignored(tmp_path: Path, engine: str) -> None:
    async def story(parties: list[Party]) -> None:
        first, second = parties
        async with running(first.driver):
            await asyncio.sleep(0.1)
            change = second.driver._factory.round_change(1, 1, None)
            assert isinstance(change, RoundChange)
            first.validators.received("another", change.raw, second.address)
            assert first.driver.counts.received == 0
            assert first.validators.is_validator(KEYS[1].address)
            assert not first.validators.is_validator(KEYS[5].address)

    told(tmp_path, engine, story, nodes=2)


def test_messages_of_the_next_protocol_use_its_capability(tmp_path: Path) -> None:
    """The validators stay the same when the protocol changes, so their connections must be chosen again."""
    parameters = {"blockperiodseconds": 2, "requesttimeoutseconds": 4, "epochlength": 30000, "startBlock": 4}

    async def story(parties: list[Party]) -> None:
        async with running(*(party.driver for party in parties)):
            await asyncio.sleep(0.1)
            for meeting in meet(parties):
                await meeting.peers()
            await asyncio.sleep(20)
            assert [ending for party in parties for ending in party.host.endings] == []
        assert min(party.node.queries.head_number for party in parties) >= 8

    told(tmp_path, "ibft2", story, forks={"qbft": parameters})
