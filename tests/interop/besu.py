"""Runs Besu as a member of a network, queried over JSON-RPC. Needs BESU=path/to/its/start/script."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence

import pytest

from ophion.testing.network import TestNetwork
from ophion.testing.wait_for import wait_for
from tests.interop.partner import Partner

BESU = os.environ.get("BESU", "")
_APIS = "ADMIN,ETH,NET,WEB3,TXPOOL,DEBUG,TRACE,IBFT,QBFT,CLIQUE,PERM"
START_LIMIT_S = 600
"""Maximum seconds until Besu answers. The Java VM starts slowly on a busy machine."""

needs_besu = pytest.mark.skipif(not shutil.which(BESU), reason="BESU does not name a start script of Besu")


class Besu(Partner):
    """A Besu node with one key of the network and the other nodes as static peers."""

    def __init__(self, network: TestNetwork, index: int, options: Sequence[str] = (), apis: Sequence[str] = ()) -> None:
        """Prepare a node. `apis` are further API groups, because not every version knows all of them."""
        super().__init__(BESU, network, index)
        self._apis = ",".join((_APIS, *apis))
        self._genesis_file = network.genesis_file
        self._engine = network.engine
        self.options = options
        (self.path / "key").write_text(network.keys[index].secret().hex())
        (self.path / "static-nodes.json").write_text(json.dumps(network.neighbours(index)))

    def start(self) -> None:
        self.launch(
            f"--data-path={self.path}",
            f"--genesis-file={self._genesis_file}",
            "--p2p-host=127.0.0.1",
            "--p2p-interface=127.0.0.1",
            f"--p2p-port={self.port}",
            "--nat-method=NONE",
            "--discovery-enabled=false",
            "--sync-mode=FULL",
            "--min-gas-price=0",
            "--rpc-http-enabled",
            "--rpc-http-host=127.0.0.1",
            f"--rpc-http-port={self.rpc_port}",
            f"--rpc-http-api={self._apis}",
            *self.options,
        )

    def wait(self) -> None:
        """Wait until the node answers."""
        wait_for(self._answers, START_LIMIT_S, "the answer of Besu")

    def propose(self, candidate: str, adds: bool) -> None:
        method = {"ibft2": "ibft_proposeValidatorVote", "qbft": "qbft_proposeValidatorVote"}
        self.rpc(method.get(self._engine, "clique_propose"), candidate, adds)

    def _answers(self) -> bool:
        try:
            return self.height >= 0
        except (OSError, ValueError, TypeError):
            return False
