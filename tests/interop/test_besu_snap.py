"""Besu joins a QBFT network by snap sync, with an Ophion node as its only peer.

Needs BESU_SNAP=path/to/the/start/script of a Besu that has snap sync for BFT networks (26.2).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ophion.testing.busy_chain import FIRST_ACCOUNT, PAYER, STORER, make_chain
from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion
from tests.interop.partner import rpc

BESU = os.environ.get("BESU_SNAP", "")
BLOCKS = 300
LIMIT_S = 180

pytestmark = pytest.mark.skipif(not shutil.which(BESU), reason="BESU_SNAP does not name a start script of Besu")


def test_besu_fetches_the_state_from_this_node(tmp_path: Path) -> None:
    chain = make_chain(tmp_path / "chain", "qbft", BLOCKS, 6000, 6000)
    genesis = f"--genesis-file={chain / 'genesis.json'}"
    ophion("blocks", "import", f"--from={chain / 'blocks.rlp'}", genesis, f"--data-path={tmp_path / 'one'}").succeeded()
    port, http_port = free_ports(2)
    besu = tmp_path / "besu"
    besu.mkdir()

    def height() -> int:
        try:
            return int(rpc(http_port, "eth_blockNumber"), 16)
        except OSError:
            return 0

    with NodeProcess(tmp_path / "one", genesis, "--p2p-port=0", "--discovery-enabled=false") as one:
        (besu / "static-nodes.json").write_text(json.dumps([one.rpc("net_enode")]))
        command = [
            BESU, genesis, f"--data-path={besu}", "--sync-mode=SNAP", "--sync-min-peers=1",
            "--data-storage-format=BONSAI", "--p2p-host=127.0.0.1", "--p2p-interface=127.0.0.1", f"--p2p-port={port}",
            "--nat-method=NONE", "--discovery-enabled=false", "--rpc-http-enabled", "--rpc-http-host=127.0.0.1",
            f"--rpc-http-port={http_port}", "--rpc-http-api=ETH",
        ]  # fmt: skip
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_for(lambda: height() == BLOCKS, LIMIT_S, "the head in Besu")
            for address in (PAYER, STORER, (FIRST_ACCOUNT + 300).to_bytes(20, "big")):
                name = "0x" + address.hex()
                for asked in (("eth_getBalance", name, "latest"), ("eth_getStorageAt", name, "0x64", "latest")):
                    assert rpc(http_port, *asked) == one.rpc(*asked)
        finally:
            process.terminate()
            process.wait(60)
    assert "Downloading world state from peers" in (tmp_path / "log").read_text()
