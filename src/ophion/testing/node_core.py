"""A node core without interfaces, threads or real time, built by `node/build.py`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ophion.chainspec.dev_network import dev_genesis
from ophion.chainspec.genesis import Genesis
from ophion.native.crypto import PrivateKey
from ophion.native.store import open_store
from ophion.node.build import NodeCore, build_core
from ophion.node.config import NodeConfig
from ophion.permissions.permissions import Permissions
from ophion.pool.events import Admitted, Origin
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Hash32
from ophion.producer.options import MinerConfig
from ophion.runtime.clock import ManualClock, SystemEntropy
from ophion.runtime.thread_pools import InlineLanes, Lanes
from ophion.testing.signing import DEV_KEYS

COINBASE = DEV_KEYS[0].address
DEV_CONFIG = NodeConfig(miner=MinerConfig(coinbase=COINBASE))


class TestCore:
    """A node core (chain, pool and block production) with a manual clock."""

    __test__ = False

    def __init__(self, core: NodeCore, clock: ManualClock) -> None:
        self.core = core
        self.clock = clock
        self.chain = core.chain
        self.queries = core.queries
        self.pool = core.pool
        self.mining = core.mining

    async def send(self, *raws: bytes) -> list[Hash32]:
        """Add transactions to the pool; all must be admitted."""
        answers = await self.pool.add(raws, Origin.LOCAL)
        refused = [str(answer.error) for answer in answers if not isinstance(answer, Admitted)]
        assert not refused, refused
        return [answer.hash for answer in answers if isinstance(answer, Admitted)]

    async def seal(self, seconds: float = 1.0) -> HashedHeader:
        """Advance the clock, then build a block from the pool; the block may be empty."""
        self.clock.advance(seconds)
        built = await self.core.assembler.assemble(1.0)
        return await self.core.assembler.commit(built.header, built, self.clock.monotonic())

    async def mine(self, *raws: bytes) -> tuple[HashedHeader, Sequence[Hash32]]:
        """Build a block with these transactions."""
        hashes = await self.send(*raws)
        return await self.seal(), hashes


@contextmanager
def open_core(
    path: Path,
    config: NodeConfig = DEV_CONFIG,
    genesis: Genesis | None = None,
    lanes: Lanes | None = None,
    key: PrivateKey = DEV_KEYS[0],
    clock: ManualClock | None = None,
) -> Iterator[TestCore]:
    """Open a network in this directory, by default the development network. A second call simulates a restart."""
    clock = clock or ManualClock()
    store = open_store(path, durable=False)
    try:
        core = build_core(
            config,
            genesis or dev_genesis(),
            store,
            key,
            lanes or InlineLanes(),
            clock,
            SystemEntropy(),
            path,
            Permissions.open(config.permissions, path, key.public_key),
        )
        core.pool.restore()
        yield TestCore(core, clock)
    finally:
        store.close()
