"""Attempts to surround a follower with hostile nodes, so that it learns nothing of its network.

The follower has one bootnode. Hostile nodes prove their discovery endpoints, name each other as neighbours, connect
from many addresses, and accept the connections of the follower. The follower restarts during the attack, before its
bootnode.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ophion.errors import DecodeError
from ophion.native import wire
from ophion.native.crypto import PrivateKey
from ophion.native.wire import WireError
from ophion.peers.discovery.packets import Endpoint, FindNode, Neighbor, Neighbors, Packet, Ping, Pong, decode, encode
from ophion.primitives.enode import Enode
from ophion.testing.network import TestNetwork
from tests.abuse.raw_peer import RawPeer, greeted, new_key
from tests.abuse.target import Target, Unanswered

ATTACKERS = 200
SECONDS = 40.0
BOOTNODE, VICTIM = 4, 5
MAX_BEHIND = 3
EXPIRY_S = 30
PING_S = 1.0
CAUGHT = (OSError, EOFError, TimeoutError, WireError, asyncio.IncompleteReadError)


async def eclipse(target: Target) -> None:
    """Attack with 200 hostile nodes around a follower that restarts before its bootnode. The follower must follow the
    chain again.
    """
    seconds = max(12.0, SECONDS * target.scale)
    count = max(20, int(ATTACKERS * target.scale))
    with tempfile.TemporaryDirectory() as folder, _network(Path(folder)) as network:
        await asyncio.to_thread(network.wait, lambda: network.nodes[VICTIM].height >= 2, 60, "a block at the follower")
        victim = Enode.parse(network.nodes[VICTIM].rpc("net_enode"))
        ring = [
            HostileNode(new_key(), f"127.0.{1 + number // 200}.{1 + number % 200}", victim) for number in range(count)
        ]
        for one in ring:
            one.ring = ring
        tasks = [asyncio.create_task(one.run()) for one in ring]
        try:
            await asyncio.sleep(seconds / 4)
            for index in (BOOTNODE, VICTIM):
                await asyncio.to_thread(network.nodes[index].stop)
            await asyncio.to_thread(network.nodes[VICTIM].start)
            # while the bootnode is offline, hostile nodes can fill every peer slot
            await asyncio.sleep(seconds / 4)
            await asyncio.to_thread(network.nodes[BOOTNODE].start)
            started = time.monotonic()
            behind = 0
            found_s = None
            while time.monotonic() < started + seconds:
                await asyncio.sleep(0.5)
                here, there = await asyncio.to_thread(network.heights, (VICTIM, 0))
                behind = there - here
                if found_s is None and behind <= MAX_BEHIND:
                    found_s = time.monotonic() - started
            peers = await asyncio.to_thread(network.nodes[VICTIM].rpc, "admin_peers")
            honest = sum(network.keys[BOOTNODE].public_key.hex() in json.dumps(peer) for peer in peers)
            print(
                f"eclipse: {count} hostile nodes, {len(peers)} peers, {honest} honest, in step after"
                f" {'never' if found_s is None else f'{found_s:.1f} s'}, at the end {behind} blocks behind",
                flush=True,
            )
            if found_s is None or behind > MAX_BEHIND:
                raise Unanswered(f"the follower is {behind} blocks behind")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def _network(path: Path) -> Iterator[TestNetwork]:
    """Start four validators, a bootnode that they know, and a follower that knows only the bootnode."""
    network = TestNetwork(path, "qbft", 4, followers=2, discovering=(BOOTNODE, VICTIM))
    for index in range(len(network.nodes)):
        known = (
            []
            if index == VICTIM
            else [enode for enode in network.neighbours(index) if network.keys[VICTIM].public_key.hex() not in enode]
        )
        (network.data_path(index) / "static-nodes.json").write_text(json.dumps(known))
    (bootnode,) = (enode for enode in network.neighbours(VICTIM) if network.keys[BOOTNODE].public_key.hex() in enode)
    network.nodes[VICTIM]._arguments.append(f"--bootnodes={bootnode}")
    network.nodes[BOOTNODE]._arguments.append("--bootnodes")
    with network as started:
        yield started


class HostileNode(asyncio.DatagramProtocol):
    """A node that answers all discovery packets, names only other hostile nodes, and keeps connections open."""

    ring: list[HostileNode]

    def __init__(self, key: PrivateKey, ip: str, victim: Enode) -> None:
        self.key = key
        self.ip = ip
        self.port = 0
        self._victim = victim
        self._transport: asyncio.DatagramTransport | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._accept, self.ip, 0)
        self.port = server.sockets[0].getsockname()[1]
        self._transport, _ = await loop.create_datagram_endpoint(lambda: self, (self.ip, self.port))
        try:
            await asyncio.gather(self._ping(), self._connect())
        finally:
            self._transport.close()
            server.close()

    async def _ping(self) -> None:
        while True:
            here, there = Endpoint(self.ip, self.port, self.port), Endpoint(self._victim.ip, self._victim.udp_port, 0)
            self._send(Ping(here, there, int(time.time()) + EXPIRY_S), (self._victim.ip, self._victim.udp_port))
            await asyncio.sleep(PING_S)

    async def _connect(self) -> None:
        while True:
            with contextlib.suppress(*CAUGHT):
                async with greeted(self._victim, self.key, self.ip) as peer:
                    await peer.join()
                    await peer.is_cut_off()
            await asyncio.sleep(PING_S)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Become a peer of the victim and deliver nothing."""
        with contextlib.suppress(*CAUGHT, asyncio.CancelledError):
            size = await reader.readexactly(2)
            auth = size + await reader.readexactly(int.from_bytes(size, "big"))
            ack, _, session = wire.Handshake.answer(self.key.secret(), auth, os.urandom(wire.HANDSHAKE_ENTROPY))
            writer.write(ack)
            peer = RawPeer(self.key, reader, writer, session)
            await peer.greet()
            await peer.join()
            await peer.is_cut_off()
        writer.close()

    # --- discovery -------------------------------------------------------------------------------------

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        try:
            digest, _, kind, body = wire.open_packet(data)
            packet = decode(kind, body)
        except (WireError, DecodeError):
            return
        expiry = int(time.time()) + EXPIRY_S
        if isinstance(packet, Ping):
            self._send(Pong(Endpoint(addr[0], addr[1], 0), digest, expiry), addr)
        elif isinstance(packet, FindNode):
            near = tuple(Neighbor(Endpoint(one.ip, one.port, one.port), one.key.public_key) for one in self.ring[:12])
            self._send(Neighbors(near, expiry), addr)

    def _send(self, packet: Packet, address: tuple[str, int]) -> None:
        kind, data = encode(packet)
        if self._transport is not None:
            self._transport.sendto(wire.seal_packet(self.key.secret(), kind, data), address)


ATTACKS = (eclipse,)
