"""Stories of nodes that speak eth, in made-up time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from ophion.chainspec.genesis import parse_genesis
from ophion.node.config import NodeConfig
from ophion.runtime.clock import ManualClock
from ophion.testing.bft_chain import bft_genesis_text
from ophion.testing.eth_node import EthNode, eth_node
from ophion.testing.virtual_loop import run_virtually

Story = Callable[..., Coroutine[Any, Any, None]]


async def turns_until(condition: Callable[[], bool]) -> None:
    """Let the loop turn, without any time passing, until something is so."""
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


def told(path: Path, count: int, story: Story, synchronises: bool = True) -> None:
    """Tell a story of so many nodes of the development network."""
    clock = ManualClock()

    async def run() -> None:
        async with AsyncExitStack() as stack:
            nodes: list[EthNode] = []
            for number in range(count):
                node = eth_node(path / str(number), clock, synchronises=synchronises)
                nodes.append(await stack.enter_async_context(node))
            await story(*nodes)

    run_virtually(run(), clock)


def told_of_validators(
    path: Path, count: int, story: Story, protocol: str = "ibft2", validators: int = 4, synchronises: bool = True
) -> None:
    """Tell a story of so many nodes that follow an IBFT 2.0 or QBFT network."""
    clock = ManualClock()
    genesis = parse_genesis(bft_genesis_text(protocol, validators))

    async def run() -> None:
        async with AsyncExitStack() as stack:
            nodes: list[EthNode] = []
            for number in range(count):
                node = eth_node(path / str(number), clock, NodeConfig(), genesis, synchronises=synchronises)
                nodes.append(await stack.enter_async_context(node))
            await story(*nodes)

    run_virtually(run(), clock)
