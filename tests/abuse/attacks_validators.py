"""One Byzantine validator of four, live: measures the block rate against that of an honest network, and looks for
forks.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from ophion.testing.network import TestNetwork
from tests.abuse.target import Target, Unanswered
from tests.faults.lying_validator import lying_command
from tests.faults.test_byzantine_validators import HONEST, LIAR, loaded

SECONDS = 20.0
PERIOD_S = 1
MIN_SHARE = 0.5
"""Minimum share of the normal rate, which is one block per period."""


async def byzantine_validator(target: Target) -> None:
    """One validator of four swaps bodies, equivocates, withholds and replays; IBFT 2.0 and QBFT, large blocks."""
    for engine in ("ibft2", "qbft"):
        share = await asyncio.to_thread(_share_of_blocks, engine, max(5.0, SECONDS * target.scale))
        print(f"byzantine-validator {engine}: {share:.0%} of the normal block rate, no fork", flush=True)
        if share < MIN_SHARE:
            raise Unanswered(f"{engine}: one liar of four leaves {share:.0%} of the blocks")


def _share_of_blocks(engine: str, seconds: float) -> float:
    with (
        tempfile.TemporaryDirectory() as folder,
        TestNetwork(
            Path(folder), engine, 4, period_s=PERIOD_S, timeout_s=1, launchers={LIAR: lying_command()}
        ) as network,
    ):
        network.wait(lambda: min(network.heights(HONEST)) >= 1, 60, "the first block")
        with loaded(network):
            began, first = time.monotonic(), min(network.heights(HONEST))
            time.sleep(seconds)
            share = (min(network.heights(HONEST)) - first) * PERIOD_S / (time.monotonic() - began)
        if not network.agrees(HONEST):
            raise Unanswered(f"{engine}: honest validators have different blocks")
        if not all(network.nodes[index].is_running for index in HONEST):
            raise Unanswered(f"{engine}: an honest validator has stopped")
    return share


ATTACKS = (byzantine_validator,)
