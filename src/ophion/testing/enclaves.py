"""Enclaves for tests, with real keys and databases and in-memory connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ophion.enclave.embedded import EmbeddedEnclave, EnclaveSettings
from ophion.enclave.options import DeliveryMode
from ophion.native.crypto import PrivateKey
from ophion.native.enclave import EnclaveKeyring
from ophion.native.store import Store, open_store
from ophion.peers.priv.protocol import PrivProtocol
from ophion.runtime.clock import Clock, SystemClock, SystemEntropy
from ophion.runtime.thread_pools import InlineLanes, Lanes
from ophion.testing.memory_connection import Host, MemoryConnection
from ophion.testing.wait_for import until


class EnclaveMember:
    """The enclave of one node. It can be stopped and opened again."""

    def __init__(
        self,
        path: Path,
        number: int,
        mode: DeliveryMode = DeliveryMode.ALL,
        keys: int = 1,
        lanes: Lanes | None = None,
    ) -> None:
        self.path = path / f"member{number}"
        self.number = number
        self.mode = mode
        self.lanes: Lanes = lanes or InlineLanes()
        self.secrets = [bytes([number, index]) * 16 for index in range(keys)]
        self.node_key = PrivateKey(bytes([100 + number]) * 32)
        self.late: list[bytes] = []
        self.clock: Clock = SystemClock()
        self.open()

    def open(self, settings: EnclaveSettings | None = None) -> None:
        """Open the enclave from disk."""
        self.store: Store = open_store(self.path)
        keyring = EnclaveKeyring(self.secrets)
        settings = settings or EnclaveSettings(self.mode)
        self.enclave = EmbeddedEnclave(self.store, keyring, self.lanes, SystemEntropy(), settings, self.clock)
        self.enclave.on_late = self.late.extend
        self.key = self.enclave.keys[0]
        clock = SystemClock()
        self.protocol = PrivProtocol(self.enclave, self.node_key.public_key, clock, SystemEntropy())

    def host(self) -> Host:
        """Return the node that the enclave belongs to, for in-memory connections."""
        return Host(self.node_key, [self.protocol])

    def close(self) -> None:
        """Stop the enclave. All acknowledged data is on disk."""
        self.store.close()


@asynccontextmanager
async def at_work(*members: EnclaveMember) -> AsyncIterator[None]:
    """Run the services of these enclaves during the `async with` block."""
    tasks = [asyncio.create_task(member.enclave.run(lambda: None)) for member in members]
    await asyncio.sleep(0)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def met(*members: EnclaveMember) -> list[MemoryConnection]:
    """Connect all enclaves with each other and wait until all of them have proven their keys."""
    hosts = [member.host() for member in members]
    meetings = [MemoryConnection(one, other) for index, one in enumerate(hosts) for other in hosts[:index]]
    await until(
        lambda: all(
            member.enclave.directory.links(other.key) for member in members for other in members if other is not member
        )
    )
    return meetings


async def part(meetings: Sequence[MemoryConnection]) -> None:
    """Close these connections."""
    for meeting in meetings:
        for transport in meeting.transports:
            transport.abort()
    for meeting in meetings:
        await meeting.wait_closed()
