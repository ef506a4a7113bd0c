"""Validators move from Clique to QBFT in virtual time, with late and differing last Clique blocks."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ophion.chain.events import ChainBlock
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.primitives.header import HashedHeader
from ophion.runtime.clock import ManualClock
from ophion.testing.node_core import TestCore
from ophion.testing.virtual_loop import run_virtually
from tests.unit.producer.authority import ALLOC, KEYS, open_network, running, sealer_of
from tests.unit.producer.test_bft_driver import driver_of, wired

FIRST = 6
PERIOD_S = 2
SIGNERS = KEYS[:4]
SEEDS = 200 if os.environ.get("OPHION_FAULTS") == "long" else 4


def genesis_of() -> Genesis:
    values = {
        "config": {
            "chainId": 2018,
            "londonBlock": 0,
            "clique": {"blockperiodseconds": PERIOD_S, "epochlength": 30000},
            "qbft": {"blockperiodseconds": PERIOD_S, "requesttimeoutseconds": 3, "startBlock": FIRST},
        },
        "timestamp": hex(int(ManualClock().now())),
        "difficulty": "0x1",
        "gasLimit": "0x1c9c380",
        "extraData": "0x" + (bytes(32) + b"".join(key.address for key in SIGNERS) + bytes(65)).hex(),
        "alloc": ALLOC,
    }
    return parse_genesis(json.dumps(values))


def run_story(path: Path, story: Callable[[list[TestCore], ManualClock], Awaitable[Any]], nodes: int = 4) -> None:
    clock = ManualClock()
    with open_network(path, genesis_of(), SIGNERS[:nodes], clock) as opened:
        run_virtually(story(opened, clock), clock)  # type: ignore[arg-type]


def connect(
    nodes: Sequence[TestCore], delay_s: Callable[[int, int, int], float], tasks: set[asyncio.Task[None]]
) -> None:
    """Deliver new blocks with their known ancestors, after a delay that depends on sender, receiver and number."""

    async def deliver(sender: TestCore, node: TestCore, header: HashedHeader, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        missing: list[HashedHeader] = []
        cursor: HashedHeader | None = header
        while cursor is not None and node.chain.header(cursor.hash) is None:
            missing.append(cursor)
            cursor = sender.chain.header(cursor.parent_hash)
        for one in reversed(missing):
            body = sender.chain.store.body(one.hash)
            assert body is not None
            await node.core.importer.import_block(ChainBlock(one, body))

    def listen(index: int, sender: TestCore) -> None:
        def tell(event: Any) -> None:
            for other, node in enumerate(nodes):
                if other != index:
                    header = event.head
                    task = asyncio.create_task(deliver(sender, node, header, delay_s(index, other, header.number)))
                    tasks.add(task)
                    task.add_done_callback(tasks.discard)

        sender.chain.events.listen(tell)

    for index, sender in enumerate(nodes):
        listen(index, sender)


async def reach(nodes: Sequence[TestCore], number: int, clock: ManualClock, limit_s: float) -> float:
    """Wait until every node has reached a height, and return the seconds."""
    began = clock.now()
    while min(node.queries.head_number for node in nodes) < number:
        assert clock.now() < began + limit_s, [node.queries.head_number for node in nodes]
        await asyncio.sleep(0.1)
    return clock.now() - began


def check_one_chain(nodes: Sequence[TestCore], number: int) -> None:
    for height in range(number + 1):
        found = [node.chain.canonical(height) for node in nodes]
        assert len({None if one is None else one.hash for one in found}) == 1, height


def test_the_chain_goes_on_with_qbft_within_one_period(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        tasks: set[asyncio.Task[None]] = set()
        connect(nodes, lambda sender, receiver, number: 0.01, tasks)
        wired(nodes)
        async with running(*map(sealer_of, nodes)):
            await reach(nodes, FIRST + 4, clock, 120)
        check_one_chain(nodes, FIRST + 4)
        times = [header.timestamp for n in range(FIRST + 4) if (header := nodes[0].chain.canonical(n)) is not None]
        assert max(after - before for before, after in pairwise(times[FIRST - 1 :])) <= PERIOD_S + 1
        assert all(driver_of(node).status().protocol == "qbft" for node in nodes)

    run_story(tmp_path, story)


def test_a_replaced_last_clique_block_restarts_the_first_qbft_height(tmp_path: Path) -> None:
    """Nodes 0 and 1 do not see the last Clique block of nodes 2 and 3 for some periods, and vice versa."""

    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        tasks: set[asyncio.Task[None]] = set()

        def delay_s(sender: int, receiver: int, number: int) -> float:
            return 3.0 * PERIOD_S if number == FIRST - 1 and sender // 2 != receiver // 2 else 0.01

        connect(nodes, delay_s, tasks)
        wired(nodes)
        async with running(*map(sealer_of, nodes)):
            await reach(nodes, FIRST + 3, clock, 240)
        check_one_chain(nodes, FIRST + 3)
        assert all(driver_of(node)._machine.fork_note is None for node in nodes)

    run_story(tmp_path, story)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_delays_of_the_last_clique_blocks_give_one_chain(tmp_path: Path, seed: int) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        tasks: set[asyncio.Task[None]] = set()
        random = Random(seed)

        def delay_s(sender: int, receiver: int, number: int) -> float:
            return random.random() * 3 * PERIOD_S if FIRST - 3 <= number < FIRST + 1 else 0.01

        connect(nodes, delay_s, tasks)
        wired(nodes)
        async with running(*map(sealer_of, nodes)):
            await reach(nodes, FIRST + 3, clock, 600)
        check_one_chain(nodes, FIRST + 3)

    run_story(tmp_path, story)
