"""Runs GoQuorum as a QBFT validator of a network. Needs GOQUORUM=path/to/its/geth."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from ophion.native.crypto import PrivateKey
from ophion.testing.network import TestNetwork, member_key
from tests.interop.partner import GAS_LIMIT, GethPartner

GOQUORUM = os.environ.get("GOQUORUM", "")

needs_goquorum = pytest.mark.skipif(not shutil.which(GOQUORUM), reason="GOQUORUM does not name a GoQuorum binary")


def keys_in_one_order(count: int) -> list[PrivateKey]:
    """Return validator keys whose addresses have the same order as bytes and as text with a checksum.

    A restarted GoQuorum 24.4 orders validators by this text instead of by bytes, and then expects other proposers than
    the rest of the network. Each address returned begins with another decimal digit, where both orders are the same.
    """
    found: dict[int, PrivateKey] = {}
    for key in map(member_key, range(1000)):
        if key.address[0] >> 4 < 10:
            found.setdefault(key.address[0] >> 4, key)
    return [found[digit] for digit in sorted(found)[:count]]


class GoQuorum(GethPartner):
    """One GoQuorum validator."""

    def __init__(self, network: TestNetwork, index: int) -> None:
        super().__init__(GOQUORUM, network, index, PRIVATE_CONFIG="ignore")
        for folder in (self.path, self.path / "geth"):
            (folder / "static-nodes.json").write_text(json.dumps(network.neighbours(index)))
        genesis = json.loads(network.genesis_file.read_text())
        options = genesis["config"].pop("qbft")
        options.pop("epochlength")
        period_s = options["blockperiodseconds"]
        protocol = {"policy": 0, "epoch": 30000, "ceil2Nby3Block": 0, "testQBFTBlock": 0}
        protocol["emptyblockperiodseconds"] = period_s
        genesis["config"].update({"isQuorum": True, "txnSizeLimit": 64, "qbft": {**options, **protocol}})
        file = self.path / "genesis.json"
        file.write_text(json.dumps(genesis))
        self.command("init", file)

    def start(self) -> None:
        # without an archive, a killed GoQuorum goes back to the last state on disk, which may be hours old
        options = {"--miner.gasprice": 0, "--miner.gastarget": GAS_LIMIT, "--gcmode": "archive"}
        self.mine({**options, "--http.api": "eth,net,istanbul"})

    def propose(self, candidate: str, adds: bool) -> None:
        self.rpc("istanbul_propose", candidate, adds)
