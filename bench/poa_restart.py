"""Measure how soon a restarted proof-of-authority node can check its first header.

    python bench/poa_restart.py [--blocks 29951] [ENGINE ...]

A network of one node makes the blocks with a manual clock. Then the script opens the database again and measures the
time until the block producers after the head are known. The default number of blocks ends just before a checkpoint,
where the node must read most headers.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import tempfile
import time
from pathlib import Path

from poa_blocks import authority_genesis

from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.node.config import NodeConfig
from ophion.runtime.clock import ManualClock
from ophion.testing.node_core import open_core
from ophion.testing.virtual_loop import run_virtually


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", nargs="*", default=["clique", "ibft2", "qbft"], metavar="ENGINE")
    parser.add_argument("--blocks", type=int, default=29_951)
    arguments = parser.parse_args()
    print(f"{'engine':<8}{'blocks':>8}{'ms':>8}")
    for engine in arguments.engine:
        with tempfile.TemporaryDirectory(prefix="poa-") as folder:
            taken_s = measure(engine, Path(folder), arguments.blocks)
        print(f"{engine:<8}{arguments.blocks:>8}{1000 * taken_s:>8.1f}")


def measure(engine: str, folder: Path, blocks: int) -> float:
    genesis = parse_genesis(json.dumps(authority_genesis(engine)))
    grow(genesis, folder, blocks)
    gc.collect()  # free the node, because its database closes only then
    with open_core(folder, NodeConfig(), genesis) as node:
        assert node.queries.head_number >= blocks
        # use a new engine, because the node's engine has already read the headers
        fresh = engine_for(genesis.spec)
        began = time.perf_counter()
        fresh.members(node.chain.head, node.chain)
        return time.perf_counter() - began


def grow(genesis: Genesis, folder: Path, blocks: int) -> None:
    clock = ManualClock()

    async def story() -> None:
        done = asyncio.Event()
        node.chain.events.listen(lambda event: done.set() if event.head.number >= blocks else None)
        assert node.mining._sealer is not None
        sealing = asyncio.create_task(node.mining._sealer.run())
        await done.wait()
        sealing.cancel()
        await asyncio.wait({sealing})

    with open_core(folder, NodeConfig(), genesis, clock=clock) as node:
        run_virtually(story(), clock)


if __name__ == "__main__":
    main()
