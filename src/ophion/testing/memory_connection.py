"""Connects two nodes in memory: real connections, sessions and sub-protocols, without sockets and with any clock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ophion.native.crypto import PrivateKey
from ophion.peers.connection.connection import Connection
from ophion.peers.connection.context import ConnectionEnd, PeerContext
from ophion.peers.connection.receive_scheduler import ReceiveScheduler
from ophion.peers.connection.timeouts import StageTimeouts
from ophion.peers.connection.traffic import Traffic
from ophion.peers.peer import Peer
from ophion.peers.peer_table import Peers
from ophion.peers.rlpx.hello import Hello
from ophion.peers.rlpx.session import Identity, Session
from ophion.peers.subprotocol import Subprotocol
from ophion.runtime.clock import Clock, SystemClock, SystemEntropy
from ophion.testing.memory_transport import MemoryTransport, connect_in_memory


class Host:
    """A node that accepts every peer."""

    def __init__(
        self,
        key: PrivateKey,
        subprotocols: Sequence[Subprotocol],
        clock: Clock | None = None,
        timing: StageTimeouts | None = None,
        client_id: str = "test",
    ) -> None:
        loop, self.clock = asyncio.get_running_loop(), clock or SystemClock()
        self.key = key
        self.peers = Peers()
        self.traffic = Traffic()
        self.endings: list[ConnectionEnd] = []
        capabilities = tuple(one for subprotocol in subprotocols for one in subprotocol.capabilities)
        self.identity = Identity(key, Hello.of(client_id, capabilities, 30303, key.public_key), capabilities)
        scheduler = ReceiveScheduler(loop, self.clock)
        self.context = PeerContext(
            loop, self.clock, scheduler, self.traffic, self, tuple(subprotocols), timing or StageTimeouts()
        )

    def connection(self, remote_id: bytes | None = None) -> Connection:
        """Create a connection that dials the remote node; without an id, a connection that waits for a dialler."""
        return Connection(self.context, Session(self.identity, SystemEntropy(), remote_id))

    def judge(self, peer: Peer) -> None:
        """Accept every peer."""

    def joined(self, connection: Connection, peer: Peer) -> None:
        self.peers.add(peer)

    def left(self, connection: Connection, ending: ConnectionEnd) -> None:
        self.endings.append(ending)
        if connection.peer is not None:
            self.peers.remove(connection.peer, ending.reason, ending.by_us)


class MemoryConnection:
    """A connection from one host to another, with a task at each end."""

    def __init__(self, dialler: Host, listener: Host) -> None:
        loop = asyncio.get_running_loop()
        self.near = dialler.connection(listener.key.public_key)
        self.far = listener.connection()
        self.transports: tuple[MemoryTransport, MemoryTransport] = connect_in_memory(loop, self.near, self.far)
        self.tasks = [asyncio.create_task(self.near.run()), asyncio.create_task(self.far.run())]

    async def peers(self) -> tuple[Peer, Peer]:
        """Return the peer that the dialler sees and the peer that the listener sees, after both Hellos."""
        while self.near.peer is None or self.far.peer is None:
            await asyncio.sleep(0)
            if all(task.done() for task in self.tasks):
                raise AssertionError("they did not become peers")
        return self.near.peer, self.far.peer

    async def wait_closed(self) -> None:
        """Wait until both connections are closed."""
        await asyncio.gather(*self.tasks)
