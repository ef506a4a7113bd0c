"""Attacks of one Byzantine validator of four: compares the block rate with an honest network under the same load, and
looks for forks.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from ophion.testing.network import TestNetwork
from tests.abuse.target import Target, Unanswered
from tests.faults.lying_validator import lying_command
from tests.faults.test_byzantine_validators import HONEST, LIAR, loaded

SECONDS = 24.0
PERIOD_S = 1
MIN_SHARE = 0.5
"""Minimum share of the block rate of an honest network."""
BLOCK_BYTES = (1_000_000, 4_000_000, 8_000_000)


@dataclass(frozen=True)
class Growth:
    """Block rate and block size of a network during an attack."""

    rate: float
    """Number of blocks per second."""
    largest: int
    """Size of the largest block in bytes."""


async def byzantine_ibft2(target: Target) -> None:
    """Attack as one IBFT 2.0 validator of four that swaps bodies, equivocates, withholds and replays, with blocks of 1
    to 8 MB.
    """
    await _compare("ibft2", target)


async def byzantine_qbft(target: Target) -> None:
    """Attack as one QBFT validator of four that swaps bodies, equivocates, withholds and replays, with blocks of 1 to 8
    MB.
    """
    await _compare("qbft", target)


async def _compare(engine: str, target: Target) -> None:
    seconds = max(5.0, SECONDS * target.scale)
    for size in BLOCK_BYTES:
        honest = await asyncio.to_thread(_growth, engine, size, seconds / 2, {})
        attacked = await asyncio.to_thread(_growth, engine, size, seconds, {LIAR: lying_command()})
        share = attacked.rate / honest.rate
        print(
            f"byzantine validator {engine}: blocks up to {attacked.largest / 1e6:.1f} MB, {attacked.rate:.2f} a second,"
            f" honest network {honest.rate:.2f} a second ({share:.0%}), no fork",
            flush=True,
        )
        if share < MIN_SHARE:
            raise Unanswered(f"{engine}: one liar of four leaves {share:.0%} of the blocks")


def _growth(engine: str, block_bytes: int, seconds: float, launchers: dict[int, tuple[str, ...]]) -> Growth:
    with (
        tempfile.TemporaryDirectory() as folder,
        TestNetwork(Path(folder), engine, 4, period_s=PERIOD_S, timeout_s=1, launchers=launchers) as network,
    ):
        network.wait(lambda: min(network.heights(HONEST)) >= 1, 60, "the first block")
        with loaded(network, block_bytes):
            began, first = time.monotonic(), min(network.heights(HONEST))
            time.sleep(seconds)
            last = min(network.heights(HONEST))
            rate = (last - first) / (time.monotonic() - began)
        if not network.agrees(HONEST):
            raise Unanswered(f"{engine}: honest validators have different blocks")
        if not all(network.nodes[index].is_running for index in HONEST):
            raise Unanswered(f"{engine}: an honest validator has stopped")
        blocks = (network.nodes[HONEST[0]].rpc("eth_getBlockByNumber", hex(n), False) for n in range(first, last + 1))
        return Growth(rate, max(int(block["size"], 16) for block in blocks))


ATTACKS = (byzantine_ibft2, byzantine_qbft)
