"""Clique with geth: two signers of each client on one chain. Needs GETH=path/to/geth (1.13, the last with Clique).

All four signers make blocks, and votes of both clients count. `OPHION_FAULTS=long` makes 200 blocks.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from ophion.testing.network import TestNetwork, member_key
from ophion.testing.ports import free_ports
from tests.interop.partner import GethPartner, check_agreement, check_signers, end_all, mixed_network

GETH = os.environ.get("GETH", "")

pytestmark = pytest.mark.skipif(not shutil.which(GETH), reason="GETH does not name a geth binary")


class GethSigner(GethPartner):
    """A geth signer whose account is one key of the network."""

    def __init__(self, network: TestNetwork, index: int) -> None:
        super().__init__(GETH, network, index)
        key = network.keys[index]
        self._address = "0x" + key.address.hex()
        (self.path / "config.toml").write_text(f"[Node.P2P]\nStaticNodes = {json.dumps(network.neighbours(index))}\n")
        secret, self._password = self.path / "secret", self.path / "password"
        secret.write_text(key.secret().hex())
        self._password.write_text("test")
        self.command("init", network.genesis_file)
        self.command("account", "import", "--lightkdf", "--password", self._password, secret)

    def start(self) -> None:
        options = {
            "--config": self.path / "config.toml",
            "--authrpc.port": free_ports(1)[0],
            "--http.api": "eth,net,clique",
            "--unlock": self._address,
            "--password": self._password,
            "--miner.etherbase": self._address,
        }
        self.mine(options, "--allow-insecure-unlock")

    def propose(self, candidate: str, adds: bool) -> None:
        self.rpc("clique_propose", candidate, adds)


def test_two_of_each_make_one_chain(tmp_path: Path) -> None:
    network = mixed_network(TestNetwork(tmp_path, "clique", 4))
    ours, theirs = (0, 1), [GethSigner(network, 2), GethSigner(network, 3)]
    nodes = network.nodes
    try:
        for one in theirs:
            one.start()
        for index in ours:
            nodes[index].start()
        check_signers(network, ours)
        # votes of both clients count: three of four signers add a fifth signer, and three of five signers remove it
        fifth = "0x" + member_key(77).address.hex()
        for adds in (True, False):
            for index in ours:
                nodes[index].rpc("clique_propose", fifth, adds)
            for one in theirs:
                one.propose(fifth, adds)
            network.wait(lambda: (fifth in nodes[0].rpc("clique_getSigners")) is adds, 120, f"the vote ({adds})")  # noqa: B023
        network.grow(6, 60, ours)
        check_agreement(network, ours, theirs, min(network.heights(ours)) - 4)
    finally:
        end_all(network, ours, theirs)
