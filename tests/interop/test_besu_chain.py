"""Besu and Ophion on one chain: one client makes the blocks and the other follows, or both are Clique signers.

Needs BESU=path/to/its/start/script. `OPHION_FAULTS=long` makes 200 blocks.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ophion.testing.network import TestNetwork, member_key
from ophion.testing.wait_for import wait_for
from tests.interop.besu import Besu, needs_besu
from tests.interop.partner import check_agreement, check_signers, end_all, mixed_network

pytestmark = needs_besu
ENGINES = ("ibft2", "qbft", "clique")


@pytest.mark.parametrize("engine", ENGINES)
def test_ours_follows(tmp_path: Path, engine: str) -> None:
    """Ophion synchronises from genesis, and again after some time offline."""
    network = mixed_network(TestNetwork(tmp_path, engine, 1, followers=1))
    besu, ours = Besu(network, 0), network.nodes[1]
    try:
        besu.start()
        besu.wait()
        wait_for(lambda: besu.height >= 8, 60, "eight blocks of Besu")
        ours.start()
        wait_for(lambda: ours.height >= 8, 30, "the chain from genesis on")
        ours.kill()
        goal = besu.height + 8
        wait_for(lambda: besu.height >= goal, 60, "more blocks of Besu")
        ours.start()
        wait_for(lambda: ours.height >= goal + 2, 30, "the chain from the middle on")
        check_agreement(network, (1,), [besu], goal)
        (peer,) = ours.rpc("admin_peers")
        assert peer["name"].startswith("besu/")
    finally:
        end_all(network, (1,), [besu])


@pytest.mark.parametrize("engine", ENGINES)
def test_besu_follows(tmp_path: Path, engine: str) -> None:
    """Besu synchronises from genesis, and again after some time offline."""
    network = mixed_network(TestNetwork(tmp_path, engine, 1, followers=1))
    besu, ours = Besu(network, 1), network.nodes[0]
    try:
        ours.start()
        wait_for(lambda: ours.height >= 8, 60, "eight blocks of ours")
        besu.start()
        besu.wait()
        wait_for(lambda: besu.height >= 8, 60, "the chain from genesis on")
        besu.kill()
        goal = ours.height + 8
        wait_for(lambda: ours.height >= goal, 60, "more blocks of ours")
        besu.start()
        besu.wait()
        wait_for(lambda: besu.height >= goal + 2, 60, "the chain from the middle on")
        check_agreement(network, (0,), [besu], goal)
    finally:
        end_all(network, (0,), [besu])


def test_three_signers_make_one_chain(tmp_path: Path) -> None:
    network = mixed_network(TestNetwork(tmp_path, "clique", 3))
    ours, theirs = (0, 1), [Besu(network, 2)]
    nodes = network.nodes
    try:
        theirs[0].start()
        theirs[0].wait()
        for index in ours:
            nodes[index].start()
        check_signers(network, ours)
        # votes of both clients count: one signer of each client adds a fourth signer, and three of four signers remove
        # it
        fourth = "0x" + member_key(77).address.hex()
        for adds, voters in ((True, (0,)), (False, ours)):
            for index in voters:
                nodes[index].rpc("clique_propose", fourth, adds)
            theirs[0].propose(fourth, adds)
            network.wait(lambda: (fourth in nodes[0].rpc("clique_getSigners")) is adds, 120, f"the vote ({adds})")  # noqa: B023
        network.grow(6, 60, ours)
        check_agreement(network, ours, theirs, min(network.heights(ours)) - 4)
    finally:
        end_all(network, ours, theirs)
