"""Node rules of a contract during attacks of unknown peers: changes take effect, and validators stay connected."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from ophion.primitives.enode import Enode
from ophion.testing.wait_for import wait_for
from tests.abuse.attacks_strangers import attacked
from tests.abuse.target import Target, Unanswered
from tests.integration.test_permissions_validators import STRANGER, MethodAccess

CHANGES = 6
ATTACKERS = 20
MAX_GAP_S = 4
"""Maximum seconds between two blocks: two block periods of one second and one round timeout of two seconds."""


async def contract_rules(target: Target) -> None:
    """Attack with 20 unknown peers while a contract permits and removes a node repeatedly. Each change must take
    effect.
    """
    changes = max(1, int(CHANGES * target.scale))
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        network = MethodAccess(Path(folder), by_contract=True)
        for node in network.nodes:
            running.enter_context(node)
        await asyncio.to_thread(wait_for, lambda: network.are_complete() and network.height(0) >= 2)
        network.nodes[STRANGER].rpc("admin_addPeer", network.enodes[1])
        first = network.height(0)
        async with attacked([Enode.parse(url) for url in network.enodes[:STRANGER]], ATTACKERS):
            times = [await asyncio.to_thread(_change_twice, network) for _ in range(changes)]
            last = network.height(0)
        stamps = [
            int(network.nodes[0].rpc("eth_getBlockByNumber", hex(number), False)["timestamp"], 16)
            for number in range(first, last + 1)
        ]
        gap = max(later - earlier for earlier, later in pairwise(stamps))
        let_in, put_out = (max(one[index] for one in times) for index in (0, 1))
        print(
            f"contract rules: {2 * changes} changes under attack, connected after {let_in:.1f} s at most, closed after"
            f" {put_out:.1f} s at most, {last - first} blocks, longest gap {gap} s",
            flush=True,
        )
        if not network.are_complete():
            raise Unanswered("validators have lost each other")
        if gap > MAX_GAP_S:
            raise Unanswered(f"no block for {gap} s")


def _change_twice(network: MethodAccess) -> tuple[float, float]:
    """Permit the fifth node and remove it. Returns the seconds until each change took effect."""
    network.change("add")
    began = time.monotonic()
    # make the fifth node dial again at once, because it may still wait for its next attempt
    for verb in ("admin_removePeer", "admin_addPeer"):
        network.nodes[STRANGER].rpc(verb, network.enodes[1])
    wait_for(lambda: STRANGER in network.knows(1))
    middle = time.monotonic()
    network.change("remove")
    changed = time.monotonic()
    wait_for(lambda: all(STRANGER not in network.knows(index) for index in range(STRANGER)))
    return middle - began, time.monotonic() - changed


ATTACKS = (contract_rules,)
