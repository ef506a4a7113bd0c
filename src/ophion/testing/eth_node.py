"""A node with the eth protocol and sync, but without sockets: `testing/node_core.py` with two more services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from random import Random

from ophion.chain.block import decode_block
from ophion.chainspec.genesis import Genesis
from ophion.node.config import NodeConfig
from ophion.peers.eth.protocol import EthProtocol
from ophion.peers.sync.synchroniser import Synchroniser
from ophion.runtime.clock import ManualClock
from ophion.runtime.thread_pools import InlineLanes, Lanes
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core

NETWORK_ID = 1337


class EthNode:
    """A node core (chain and pool) with running eth and sync services."""

    def __init__(self, node: TestCore, eth: EthProtocol, sync: Synchroniser) -> None:
        self.node = node
        self.eth = eth
        self.sync = sync
        self.chain = node.chain
        self.pool = node.pool

    @property
    def height(self) -> int:
        """Number of the head."""
        return self.chain.head.number

    async def take(self, blocks: Iterator[bytes]) -> None:
        """Import encoded blocks."""
        for raw in blocks:
            await self.node.core.importer.import_block(decode_block(raw, self.chain.engine))


@contextmanager
def _eth_node(
    path: Path, clock: ManualClock, config: NodeConfig, genesis: Genesis | None, lanes: Lanes
) -> Iterator[EthNode]:
    path.mkdir(parents=True, exist_ok=True)
    with open_core(path, config, genesis, lanes, clock=clock) as node:
        core = node.core
        eth = EthProtocol(core.chain, core.importer, core.pool, lanes, clock, Random(1), NETWORK_ID)
        yield EthNode(node, eth, Synchroniser(core.chain, core.importer, eth, lanes))


@asynccontextmanager
async def eth_node(
    path: Path,
    clock: ManualClock,
    config: NodeConfig = DEV_CONFIG,
    genesis: Genesis | None = None,
    lanes: Lanes | None = None,
    synchronises: bool = True,
) -> AsyncIterator[EthNode]:
    """Run a node in this directory, by default on the development network."""
    with _eth_node(path, clock, config, genesis, lanes or InlineLanes()) as node:
        running = (node.eth, node.sync) if synchronises else (node.eth,)
        services = [asyncio.create_task(service.run(lambda: None)) for service in running]
        await asyncio.sleep(0)
        try:
            yield node
        finally:
            for service in services:
                service.cancel()
            await asyncio.wait(services)
        for service in services:
            if not service.cancelled():
                service.result()
