"""QBFT with GoQuorum: two validators of each client on one chain. Needs GOQUORUM=path/to/its/geth.

They take turns, one of each side is killed and comes back, votes of both sides count, and a validator that was voted in
and never comes costs little. `OPHION_FAULTS=long` lets the network make 200 blocks.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from ophion.testing.network import TestNetwork, member_key
from tests.interop.partner import BLOCKS, GAS_LIMIT, Partner, check_agreement, end_all, mixed_network

GOQUORUM = os.environ.get("GOQUORUM", "")

pytestmark = pytest.mark.skipif(not shutil.which(GOQUORUM), reason="GOQUORUM does not name a GoQuorum binary")


class GoQuorum(Partner):
    """One GoQuorum validator."""

    def __init__(self, network: TestNetwork, index: int) -> None:
        super().__init__(GOQUORUM, network, index, PRIVATE_CONFIG="ignore")
        for folder in (self.path, self.path / "geth"):
            (folder / "static-nodes.json").write_text(json.dumps(network.neighbours(index)))
        genesis = json.loads(network.genesis_file.read_text())
        options = genesis["config"].pop("qbft")
        options.pop("epochlength")
        dialect = {"policy": 0, "epoch": 30000, "ceil2Nby3Block": 0, "testQBFTBlock": 0, "emptyblockperiodseconds": 1}
        genesis["config"].update({"isQuorum": True, "txnSizeLimit": 64, "qbft": {**options, **dialect}})
        file = self.path / "genesis.json"
        file.write_text(json.dumps(genesis))
        self.command("init", file)

    def start(self) -> None:
        self.launch({"--miner.gasprice": 0, "--miner.gastarget": GAS_LIMIT, "--http.api": "eth,net,istanbul"})


class Mixed:
    """Two validators of each client, and a node of ours that follows."""

    OURS = (0, 1, 4)

    def __init__(self, path: Path) -> None:
        self.network = mixed_network(TestNetwork(path, "qbft", 4, followers=1))
        self.theirs = [GoQuorum(self.network, 2), GoQuorum(self.network, 3)]

    def __enter__(self) -> Mixed:
        for one in self.theirs:
            one.start()
        for index in self.OURS:
            self.network.nodes[index].start()
        self.network.wait(lambda: min(self.network.heights(self.OURS)) >= 2, 60, "the second block")
        return self

    def __exit__(self, *reason: object) -> None:
        end_all(self.network, self.OURS, self.theirs)

    def vote(self, candidate: str, adds: bool) -> None:
        """Let all four vote, and wait until that has its effect."""
        for index in (0, 1):
            self.network.nodes[index].rpc("qbft_proposeValidatorVote", candidate, adds)
        for one in self.theirs:
            one.rpc("istanbul_propose", candidate, adds)
        self.network.wait(lambda: (candidate in self.validators()) is adds, 120, f"the vote ({adds})")

    def validators(self) -> list[str]:
        listed: list[str] = self.network.nodes[0].rpc("qbft_getValidatorsByBlockNumber", "latest")
        return listed

    def makers(self, first: int, count: int) -> Counter[str]:
        """Who made these blocks."""
        blocks = (self.network.nodes[0].rpc("eth_getBlockByNumber", hex(first + n), False) for n in range(count))
        return Counter(block["miner"] for block in blocks)

    def check_agreement(self) -> None:
        """All six have the same block, a moment ago."""
        check_agreement(self.network, self.OURS, self.theirs, min(self.network.heights(self.OURS)) - 1)


def address_between(low: bytes, high: bytes) -> bytes:
    """The address of somebody nobody has seen, whose turn comes between two others."""
    return next(key.address for key in map(member_key, range(2000, 9999)) if low < key.address < high)


def test_two_of_each_make_one_chain(tmp_path: Path) -> None:
    with Mixed(tmp_path) as mixed:
        network, ours, theirs = mixed.network, mixed.OURS, mixed.theirs
        first = network.height(0)
        network.grow(BLOCKS, 60 + 3 * BLOCKS, ours)
        made = mixed.makers(first, BLOCKS)
        assert len(made) == 4
        assert max(made.values()) - min(made.values()) <= max(2, BLOCKS // 20), made
        # one of each side is killed and comes back
        network.kill(1)
        network.grow(5, 60, (0,))
        network.nodes[1].start()
        network.grow(3, 60, ours)
        theirs[0].kill()
        network.grow(5, 60, ours)
        theirs[0].start()
        network.grow(4, 60, ours)
        # votes of both sides count: they add the node that has followed so far, and remove it again
        fifth = "0x" + network.keys[4].address.hex()
        mixed.vote(fifth, True)
        mixed.vote(fifth, False)
        mixed.check_agreement()


@pytest.mark.parametrize(("successor", "whose"), [(1, "ours"), (2, "theirs")])
def test_a_validator_that_is_voted_in_and_never_comes(tmp_path: Path, successor: int, whose: str) -> None:
    """All four that are there are needed from then on, and every fifth turn falls to whoever comes next."""
    with Mixed(tmp_path) as mixed:
        network = mixed.network
        absent = "0x" + address_between(network.keys[successor - 1].address, network.keys[successor].address).hex()
        mixed.vote(absent, True)
        first, began = network.height(0), time.monotonic()
        network.grow(BLOCKS, 60 + 5 * BLOCKS, mixed.OURS)
        took = time.monotonic() - began
        made = mixed.makers(first + 1, BLOCKS)
        print(f"{BLOCKS} blocks with an absent validator in {took:.1f} s, made by {sorted(made.values())}")
        assert len(made) == 4
        mixed.vote(absent, False)
        network.grow(4, 60, mixed.OURS)
        mixed.check_agreement()
