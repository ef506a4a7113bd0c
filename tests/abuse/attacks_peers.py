"""Attacks on the peer port, most of which need no key. The honest client uses HTTP during the attacks.

hostile_peers.py tests attacks of accepted peers on blocks and honest peers. The attackers of this module are not
accepted peers. They must not slow down clients either.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable

from ophion.native import wire
from tests.abuse import attacks_messages, attacks_reconnects, hostile_peers, peer_target
from tests.abuse.raw_peer import dialled, is_closed, new_key
from tests.abuse.target import Target, Unanswered, expect

PeerAttack = Callable[[peer_target.Target], Awaitable[None]]


async def slow_handshakes(target: peer_target.Target) -> None:
    """Attack with 500 correct handshakes that are sent byte by byte."""

    async def one(_: int) -> None:
        auth = wire.Handshake.initiate(
            new_key().secret(), target.enode.node_id, os.urandom(wire.HANDSHAKE_ENTROPY)
        ).auth
        async with dialled(target.enode) as (reader, writer):
            dripping = asyncio.create_task(drip(writer, auth))
            try:
                expect(await is_closed(reader), "still open")
            finally:
                dripping.cancel()

    await peer_target.in_turns(target.count(500, 20), one, width=target.count(500, 20))


async def drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        for place in range(len(data)):
            writer.write(data[place : place + 1])
            await writer.drain()
            await asyncio.sleep(0.05)


def watched(attack: PeerAttack) -> Callable[[Target], Awaitable[None]]:
    """Wrap an attack of hostile_peers.py, so that it can be an entry in the table of attacks in abuse.py."""

    async def run(target: Target) -> None:
        assert target.enode is not None
        peers = peer_target.Target(target.enode, target.http, target.pid, target.scale, meter=target.meter)
        try:
            await attack(peers)
        except* (Unanswered, OSError, EOFError, TimeoutError) as group:
            peers.failures += [f"{type(error).__name__}: {error}" for error in hostile_peers.flat(group)]
        if peers.failures:
            raise Unanswered("; ".join(peers.failures[:3]))

    run.__name__ = attack.__name__
    run.__doc__ = attack.__doc__
    return run


ATTACKS = tuple(
    map(
        watched,
        (
            hostile_peers.wrong_handshakes,
            hostile_peers.half_open,
            slow_handshakes,
            hostile_peers.large_frames,
            hostile_peers.connection_flood,
            hostile_peers.packet_flood,
            *attacks_reconnects.ATTACKS,
            attacks_messages.peer_messages,
        ),
    )
)
QBFT_ATTACKS = (watched(attacks_messages.qbft_shapes),)
