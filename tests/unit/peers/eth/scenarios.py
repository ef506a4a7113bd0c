"""Runs test scenarios of eth nodes in virtual time."""

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

Scenario = Callable[..., Coroutine[Any, Any, None]]


async def run_loop_until(condition: Callable[[], bool]) -> None:
    """Run the event loop without advancing the time until the condition holds."""
    for _ in range(100_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition never held")


def run_nodes(path: Path, count: int, scenario: Scenario, synchronises: bool = True) -> None:
    """Run a scenario with `count` nodes of the development network."""
    clock = ManualClock()

    async def run() -> None:
        async with AsyncExitStack() as stack:
            nodes: list[EthNode] = []
            for number in range(count):
                node = eth_node(path / str(number), clock, synchronises=synchronises)
                nodes.append(await stack.enter_async_context(node))
            await scenario(*nodes)

    run_virtually(run(), clock)


def run_validator_nodes(
    path: Path, count: int, scenario: Scenario, protocol: str = "ibft2", validators: int = 4, synchronises: bool = True
) -> None:
    """Run a scenario with `count` nodes that follow an IBFT 2.0 or QBFT network."""
    clock = ManualClock()
    genesis = parse_genesis(bft_genesis_text(protocol, validators))

    async def run() -> None:
        async with AsyncExitStack() as stack:
            nodes: list[EthNode] = []
            for number in range(count):
                node = eth_node(path / str(number), clock, NodeConfig(), genesis, synchronises=synchronises)
                nodes.append(await stack.enter_async_context(node))
            await scenario(*nodes)

    run_virtually(run(), clock)
