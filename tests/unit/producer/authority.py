"""Networks of a few signers or validators for producer tests: real chains, manual clocks, no threads."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from ophion.chain.chain import Chain
from ophion.chain.events import ChainBlock
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.cli.rlp import ExtraDataType, extra_data
from ophion.native.crypto import PrivateKey
from ophion.node.config import NodeConfig
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address, Hash32
from ophion.producer.mining_control import Sealer
from ophion.runtime.clock import ManualClock
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.signing import DEV_KEYS

KEYS = tuple(sorted((PrivateKey(bytes([n]) * 32) for n in range(1, 8)), key=lambda key: key.address))
"""Keys in proposer order."""
ALLOC = {key.address.hex(): {"balance": hex(10**24)} for key in DEV_KEYS}
_EXTRA = {"ibft2": ExtraDataType.IBFT_EXTRA_DATA, "qbft": ExtraDataType.QBFT_EXTRA_DATA}


def authority_genesis(
    engine: str,
    members: Sequence[Address],
    alloc: dict[str, Any] | None = None,
    forks: dict[str, Any] | None = None,
    **parameters: Any,
) -> Genesis:
    """Return a network (London by default) with these validators or signers, starting at the initial time of manual
    clocks.
    """
    if engine == "clique":
        listed = bytes(32) + b"".join(members) + bytes(65)
    else:
        listed = extra_data(members, _EXTRA[engine])
    values = {
        "config": {"chainId": 2018, "londonBlock": 0, **(forks or {}), engine: parameters},
        "timestamp": hex(int(ManualClock().now())),
        "difficulty": "0x1",
        "gasLimit": "0x1c9c380",
        "extraData": "0x" + listed.hex(),
        "alloc": {**ALLOC, **(alloc or {})},
    }
    return parse_genesis(json.dumps(values))


def sealer_of(node: TestCore) -> Sealer:
    """Return the sealer of a node."""
    sealer = node.mining._sealer
    assert sealer is not None
    return sealer


@contextmanager
def open_network(
    path: Path, genesis: Genesis, keys: Sequence[PrivateKey], clock: ManualClock
) -> Iterator[list[TestCore]]:
    """Open one node per key, with one clock."""
    gc.collect()  # free the nodes, because the databases of connected nodes close only then
    with ExitStack() as stack:
        yield [
            stack.enter_context(open_core(path / f"node{index}", NodeConfig(), genesis, key=key, clock=clock))
            for index, key in enumerate(keys)
        ]


def connect(nodes: Sequence[TestCore]) -> None:
    """Pass the new head of each node to all other nodes, like block gossip."""

    def teller(teller: TestCore) -> Callable[[Any], None]:
        def tell(event: Any) -> None:
            for node in nodes:
                if node is not teller:
                    for block in getattr(event, "blocks", None) or event.added:
                        task = asyncio.get_running_loop().create_task(_take(node, block))
                        _TASKS.add(task)
                        task.add_done_callback(_TASKS.discard)

        return tell

    for node in nodes:
        node.chain.events.listen(teller(node))


_TASKS: set[asyncio.Task[None]] = set()


async def _take(node: TestCore, block: ChainBlock) -> None:
    if node.chain.header(block.header.hash) is None:
        await node.core.importer.import_block(block)


@asynccontextmanager
async def running(*sealers: Sealer) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run sealers during a scenario. Raises the errors of the sealers."""
    tasks = [asyncio.create_task(sealer.run()) for sealer in sealers]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result


class Steps:
    """A chain that counts steps from a block to its parent."""

    def __init__(self, chain: Chain) -> None:
        self.taken = 0
        self.canonical = chain.canonical
        self.total_difficulty = chain.total_difficulty
        self.ommers = chain.ommers
        self.checkpoint = chain.checkpoint
        self._chain = chain

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        self.taken += 1
        return self._chain.header(block_hash)
