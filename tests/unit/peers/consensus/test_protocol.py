"""Tests IBF/1 and istanbul/100 on real connections: permitted messages, and their cost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ophion.native.crypto import PrivateKey
from ophion.peers.consensus.protocol import message_cost
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.testing.memory_connection import Host, MemoryConnection
from tests.unit.peers.consensus.circle import Party, meet, told
from tests.unit.producer.authority import running

BOTH = pytest.mark.parametrize("engine", ["ibft2", "qbft"])


@BOTH
def test_validators_decide_over_connections(tmp_path: Path, engine: str) -> None:
    async def story(parties: list[Party]) -> None:
        async with running(*(party.driver for party in parties)):
            meet(parties)
            await asyncio.sleep(13)
        heights = [party.node.queries.head_number for party in parties]
        assert min(heights) >= 5
        hashes = {party.node.chain.canonical(5).hash for party in parties}  # type: ignore[union-attr]
        assert len(hashes) == 1

    told(tmp_path, engine, story)


def test_each_chain_offers_its_own_protocol(tmp_path: Path) -> None:
    offers = {"ibft2": ("IBF", 1, 4), "qbft": ("istanbul", 100, 22)}
    for engine, (name, version, length) in offers.items():

        async def story(parties: list[Party]) -> None:
            (protocol,) = parties[0].protocols
            (capability,) = protocol.capabilities
            assert (capability.name, capability.version, capability.length) == (name, version, length)  # noqa: B023
            assert capability.message_name(length - 4) == "proposal"  # noqa: B023
            assert capability.message_name(length - 1) == "round_change"  # noqa: B023

        told(tmp_path / engine, engine, story, nodes=1)


def test_an_unknown_message_code_ends_the_connection(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        (meeting,) = meet(parties)
        near, _ = await meeting.peers()
        near.send("istanbul", 0x11, b"\xc0")
        await meeting.wait_closed()
        assert parties[0].host.endings[0].reason is DisconnectReason.BREACH

    told(tmp_path, "qbft", story, nodes=2)


@BOTH
def test_what_cannot_be_read_is_dropped_and_counted_and_a_flood_is_not_even_looked_at(
    tmp_path: Path, engine: str
) -> None:
    async def story(parties: list[Party]) -> None:
        victim, flooder = parties
        async with running(victim.driver):
            (meeting,) = meet(parties)
            near, far = await meeting.peers()
            name, first = ("IBF", 0) if engine == "ibft2" else ("istanbul", 0x12)
            await asyncio.sleep(0.5)
            for number in range(1500):
                near.send(name, first + number % 4, b"\xc3" + number.to_bytes(3, "big"), may_drop=True)
                if number % 50 == 0:
                    await asyncio.sleep(0.001)
            await asyncio.sleep(0.1)
            assert near.is_open
            assert far.is_open, "no reason to part"
            assert far.score < 100
            counts = victim.driver.counts
            assert counts.malformed > 900
            assert victim.validators.dropped > 0
            assert counts.malformed + victim.validators.dropped <= 1500
        assert flooder.driver.counts.received == 0

    told(tmp_path, engine, story, nodes=2)


def test_large_messages_of_strangers_are_not_even_looked_at(tmp_path: Path) -> None:
    """Large messages of non-validators are dropped unread, because hashing 10 MB takes 0.1 s on the loop and storing it
    takes memory.
    """

    async def story(parties: list[Party]) -> None:
        victim, other = parties
        async with running(victim.driver):
            unknown_node = Host(PrivateKey(b"\x55" * 32), other.protocols, other.host.clock)
            near, _ = await MemoryConnection(unknown_node, victim.host).peers()
            await asyncio.sleep(0.5)
            near.send("istanbul", 0x12, b"\xc3" + bytes(3))
            near.send("istanbul", 0x12, b"\xc0" + bytes(10**6))
            await asyncio.sleep(0.1)
            assert (victim.driver.counts.malformed, victim.validators.dropped) == (1, 1)
            (meeting,) = meet(parties)
            near, _ = await meeting.peers()
            await asyncio.sleep(0.5)
            near.send("istanbul", 0x12, b"\xc0" + bytes(10**6))
            await asyncio.sleep(0.1)
            assert (victim.driver.counts.malformed, victim.validators.dropped) == (2, 1), "a validator may"

    told(tmp_path, "qbft", story, nodes=2)


def test_messages_dropped_for_their_size_do_not_use_up_the_number_of_messages(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        victim, other = parties
        async with running(victim.driver):
            unknown_node = Host(PrivateKey(b"\x55" * 32), other.protocols, other.host.clock)
            near, _ = await MemoryConnection(unknown_node, victim.host).peers()
            await asyncio.sleep(0.5)
            for _ in range(60):
                near.send("istanbul", 0x12, b"\xc0" + bytes(15_000))
            await asyncio.sleep(0.1)
            assert (victim.driver.counts.malformed, victim.validators.dropped) == (4, 56)
            for _ in range(20):
                near.send("istanbul", 0x12, b"\xc3" + bytes(3))
            await asyncio.sleep(0.1)
            assert (victim.driver.counts.malformed, victim.validators.dropped) == (24, 56)

    told(tmp_path, "qbft", story, nodes=2)


def test_the_rate_limit_grows_with_a_large_validator_set() -> None:
    assert [message_cost(count, 1.0) for count in (0, 4, 25, 50, 100)] == [1.0, 1.0, 1.0, 0.5, 0.25]


def test_the_rate_limit_admits_all_relays_of_a_large_validator_set_with_short_periods() -> None:
    """A peer that relays everything sends two votes of every validator per block."""
    for validators, period_s in ((4, 0.1), (13, 0.1), (25, 0.1), (25, 0.2), (50, 0.1), (100, 0.5)):
        messages_a_second = 500 / message_cost(validators, period_s)
        assert messages_a_second >= 2 * (2 * validators / period_s), (validators, period_s)
    assert message_cost(4, 0.1) == 1.0


def test_the_rate_limit_follows_the_period_of_the_chain(tmp_path: Path) -> None:
    async def story(parties: list[Party]) -> None:
        first = parties[0]
        assert first.validators.period_s == 1.0, "no height has begun"
        async with running(first.driver):
            await asyncio.sleep(0.1)
            assert first.validators.period_s == 0.1

    told(tmp_path, "qbft", story, nodes=2, xblockperiodmilliseconds=100)
