"""Runs GoQuorum as a QBFT validator of a network. Needs GOQUORUM=path/to/its/geth."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from ophion.testing.network import TestNetwork
from tests.interop.partner import GAS_LIMIT, GethPartner

GOQUORUM = os.environ.get("GOQUORUM", "")

needs_goquorum = pytest.mark.skipif(not shutil.which(GOQUORUM), reason="GOQUORUM does not name a GoQuorum binary")


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
