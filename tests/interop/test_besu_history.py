"""A node fetches a state, and bodies and receipts of old blocks, from Besu, its only peer.

Needs BESU=path/to/the/start/script of a Besu.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from ophion.native.store import BlockHistory, open_store
from ophion.testing.busy_chain import FIRST_ACCOUNT, PAYER, STORER, make_chain
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


@contextmanager
def _besu(tmp_path: Path, chain: Path, *options: str) -> Iterator[tuple[NodeProcess, int]]:
    """Run a node with the chain, and a Besu that has fetched the chain from it. Yields the node and Besu's port, and
    writes `static.json` with Besu alone.
    """
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

    with NodeProcess(tmp_path / "one", genesis, *PEERS) as one, (tmp_path / "log").open("wb") as log:
        (besu / "static-nodes.json").write_text(json.dumps([one.rpc("net_enode")]))
        command = [
            BESU, genesis, f"--data-path={besu}", "--sync-mode=FULL", "--sync-min-peers=1", "--p2p-host=127.0.0.1",
            "--p2p-interface=127.0.0.1", f"--p2p-port={port}", "--nat-method=NONE", "--discovery-enabled=false",
            "--rpc-http-enabled", "--rpc-http-host=127.0.0.1", f"--rpc-http-port={http_port}",
            "--rpc-http-api=ETH,NET", *options,
        ]  # fmt: skip
        with subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                wait_for(lambda: height() == BLOCKS, LIMIT_S)
                (tmp_path / "static.json").write_text(json.dumps([rpc(http_port, "net_enode")]))
                yield one, http_port
            finally:
                process.terminate()


def test_old_blocks_come_from_besu(tmp_path: Path) -> None:
    chain = make_chain(tmp_path / "chain", "qbft", BLOCKS, 600, 600)
    genesis, data = f"--genesis-file={chain / 'genesis.json'}", f"--data-path={tmp_path / 'two'}"
    ophion("blocks", "import", f"--from={chain / 'blocks.rlp'}", genesis, data).succeeded()
    with closing(open_store(tmp_path / "two" / "database")) as store:
        # bodies that are declared missing are fetched again
        BlockHistory(store).begin(BLOCKS)
    static = f"--static-nodes-file={tmp_path / 'static.json'}"
    with _besu(tmp_path, chain), NodeProcess(tmp_path / "two", genesis, *PEERS, static) as two:
        ended = f"all blocks have bodies and receipts blocks={BLOCKS}"
        wait_for(lambda: ended in two.output(), LIMIT_S)
        assert two.rpc("eth_capabilities")["receipts"]["oldestBlock"] == "0x0"
    ophion("storage", "check", data).succeeded()


def test_the_state_comes_from_besu(tmp_path: Path) -> None:
    chain = make_chain(tmp_path / "chain", "qbft", BLOCKS, 6000, 6000)
    new = tmp_path / "new"
    options = (f"--genesis-file={chain / 'genesis.json'}", *PEERS, f"--static-nodes-file={tmp_path / 'static.json'}")
    with (
        _besu(tmp_path, chain, "--data-storage-format=BONSAI", "--Xsnapsync-server-enabled=true") as (one, http_port),
        NodeProcess(new, *options, "--sync-mode=SNAP") as two,
    ):
        wait_for(lambda: two.height == BLOCKS, LIMIT_S)
        assert "state complete number=292" in two.output()
        for address in (PAYER, STORER, (FIRST_ACCOUNT + 300).to_bytes(20, "big")):
            asked = ("eth_getProof", "0x" + address.hex(), ["0x64"], "latest")
            assert two.rpc(*asked) == one.rpc(*asked)
        wait_for(lambda: two.rpc("eth_capabilities")["receipts"]["oldestBlock"] == "0x0", LIMIT_S)
        old = ("eth_getBlockByNumber", "0x7", False)
        assert two.rpc(*old)["transactions"] == rpc(http_port, *old)["transactions"] != []
    ophion("storage", "check", f"--data-path={new}").succeeded()
