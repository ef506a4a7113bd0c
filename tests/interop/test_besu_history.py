"""A node fetches bodies and receipts of old blocks from Besu, its only peer.

Needs BESU=path/to/the/start/script of a Besu.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from ophion.native.store import BlockHistory, open_store
from ophion.testing.busy_chain import make_chain
from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion
from tests.interop.partner import rpc

BESU = os.environ.get("BESU", "")
BLOCKS = 300
LIMIT_S = 180
PEERS = ("--p2p-port=0", "--discovery-enabled=false")

pytestmark = pytest.mark.skipif(not shutil.which(BESU), reason="BESU does not name a start script of Besu")


def test_old_blocks_come_from_besu(tmp_path: Path) -> None:
    chain = make_chain(tmp_path / "chain", "qbft", BLOCKS, 600, 600)
    genesis = f"--genesis-file={chain / 'genesis.json'}"
    for name in ("one", "two"):
        data = f"--data-path={tmp_path / name}"
        ophion("blocks", "import", f"--from={chain / 'blocks.rlp'}", genesis, data).succeeded()
    with closing(open_store(tmp_path / "two" / "database")) as store:
        # bodies that are declared missing are fetched again
        BlockHistory(store).begin(BLOCKS)
    port, http_port = free_ports(2)
    besu = tmp_path / "besu"
    besu.mkdir()

    def height() -> int:
        try:
            return int(rpc(http_port, "eth_blockNumber"), 16)
        except OSError:
            return 0

    with NodeProcess(tmp_path / "one", genesis, *PEERS) as one, (tmp_path / "log").open("wb") as log:
        (besu / "static-nodes.json").write_text(json.dumps([one.rpc("net_enode")]))
        command = [
            BESU, genesis, f"--data-path={besu}", "--sync-mode=FULL", "--sync-min-peers=1", "--p2p-host=127.0.0.1",
            "--p2p-interface=127.0.0.1", f"--p2p-port={port}", "--nat-method=NONE", "--discovery-enabled=false",
            "--rpc-http-enabled", "--rpc-http-host=127.0.0.1", f"--rpc-http-port={http_port}",
            "--rpc-http-api=ETH,NET",
        ]  # fmt: skip
        with subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                wait_for(lambda: height() == BLOCKS, LIMIT_S)
                static = tmp_path / "static.json"
                static.write_text(json.dumps([rpc(http_port, "net_enode")]))
                with NodeProcess(tmp_path / "two", genesis, *PEERS, f"--static-nodes-file={static}") as two:
                    ended = f"all blocks have bodies and receipts blocks={BLOCKS}"
                    wait_for(lambda: ended in two.output(), LIMIT_S)
                    assert two.rpc("eth_capabilities")["receipts"]["oldestBlock"] == "0x0"
            finally:
                process.terminate()
    ophion("storage", "check", f"--data-path={tmp_path / 'two'}").succeeded()
