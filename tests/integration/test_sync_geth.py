"""Clique with geth 1.13.15: each client synchronises from the other, and both gossip transactions to each other."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ophion.testing.busy_chain import FIRST_ACCOUNT, PAYER, STORER, make_chain
from ophion.testing.clique_chain import CHAIN_ID, SIGNER, clique_genesis_text, signed_blocks
from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion

GETH = os.environ.get("GETH")
BLOCKS = 5000
PEERS = ("--p2p-port=0", "--discovery-enabled=false", "--rpc-http-api=ETH,NET,ADMIN,TXPOOL,CLIQUE")

pytestmark = pytest.mark.skipif(
    GETH is None, reason="GETH does not name a geth binary (1.13.15 is the last with Clique)"
)


class Geth:
    """A geth that follows the network or seals."""

    def __init__(self, data: Path) -> None:
        assert GETH is not None
        self.base = [GETH, "--datadir", str(data)]
        self.data = data
        self.url = ""

    def command(self, *arguments: str | Path) -> None:
        ran = subprocess.run(
            [*self.base, *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
        )
        assert ran.returncode == 0, ran.stderr

    @contextmanager
    def running(self, *options: str) -> Iterator[Geth]:
        port, http, auth = free_ports(3)
        self.url = f"http://127.0.0.1:{http}"
        log = (self.data / "geth.log").open("wb")
        process = subprocess.Popen(
            [
                *self.base, "--syncmode=full", "--nodiscover", "--nat=none", "--ipcdisable", f"--networkid={CHAIN_ID}",
                f"--port={port}", f"--authrpc.port={auth}", "--http", f"--http.port={http}",
                "--http.api=eth,net,admin,txpool,clique", *options,
            ],
            stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            wait_for(self.answers)
            yield self
        finally:
            process.terminate()
            process.wait(20)
            log.close()

    def answers(self) -> bool:
        try:
            return bool(self.rpc("net_version"))
        except (urllib.error.URLError, ConnectionError):
            return False

    def rpc(self, method: str, *params: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        asked = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=20) as answer:
            found = json.loads(answer.read())
        # a geth that has just started returns an error until its transaction index is ready
        assert "error" not in found or "indexing" in found["error"]["message"], found
        return found.get("result")

    @property
    def enode(self) -> str:
        url: str = self.rpc("admin_nodeInfo")["enode"]
        return url.partition("?")[0]


def head(node: NodeProcess | Geth) -> tuple[int, str]:
    block = node.rpc("eth_getBlockByNumber", "latest", False)
    return int(block["number"], 16), block["hash"]


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a chain of one signer into a file."""
    folder: Path = tmp_path_factory.mktemp("chain")
    (folder / "genesis.json").write_text(clique_genesis_text())
    with (folder / "blocks.rlp").open("wb") as file:
        for _, block in signed_blocks(BLOCKS):
            file.write(block)
    return folder


def test_this_node_fetches_the_chain_from_geth(chain: Path, tmp_path: Path) -> None:
    geth = Geth(tmp_path / "geth")
    geth.command("init", chain / "genesis.json")
    geth.command("import", chain / "blocks.rlp")
    genesis = f"--genesis-file={chain / 'genesis.json'}"
    with geth.running(), NodeProcess(tmp_path / "one", genesis, *PEERS) as one:
        assert one.rpc("admin_addPeer", geth.enode) is True
        wait_for(lambda: head(one)[0] == BLOCKS)
        assert head(one) == head(geth)
        assert int(one.rpc("net_peerCount"), 16) == 1


def test_geth_fetches_the_chain_from_this_node(chain: Path, tmp_path: Path) -> None:
    genesis = f"--genesis-file={chain / 'genesis.json'}"
    ophion("blocks", "import", f"--from={chain / 'blocks.rlp'}", genesis, f"--data-path={tmp_path / 'one'}").succeeded()
    geth = Geth(tmp_path / "geth")
    geth.command("init", chain / "genesis.json")
    with NodeProcess(tmp_path / "one", genesis, *PEERS) as one, geth.running():
        geth.rpc("admin_addPeer", one.rpc("net_enode"))
        wait_for(lambda: head(geth)[0] == BLOCKS)
        assert head(geth) == head(one)


def test_geth_fetches_the_state_from_this_node(tmp_path: Path) -> None:
    chain = make_chain(tmp_path / "chain", "clique", 200, 4000, 4000)
    genesis = f"--genesis-file={chain / 'genesis.json'}"
    ophion("blocks", "import", f"--from={chain / 'blocks.rlp'}", genesis, f"--data-path={tmp_path / 'one'}").succeeded()
    geth = Geth(tmp_path / "geth")
    geth.command("init", chain / "genesis.json")
    with NodeProcess(tmp_path / "one", genesis, *PEERS) as one, geth.running("--syncmode=snap"):
        geth.rpc("admin_addPeer", one.rpc("net_enode"))
        wait_for(lambda: head(geth)[0] == 200, 120)
        for address in (PAYER, STORER, (FIRST_ACCOUNT + 300).to_bytes(20, "big")):
            asked = ("eth_getProof", "0x" + address.hex(), ["0x" + 31 * "00" + "64"], "latest")
            ours, theirs = one.rpc(*asked), geth.rpc(*asked)
            assert ours["accountProof"] == theirs["accountProof"]
            assert ours["storageProof"][0]["value"] == theirs["storageProof"][0]["value"]
    assert "Snap sync complete" in (tmp_path / "geth" / "geth.log").read_text()


def test_this_node_fetches_the_state_from_geth(tmp_path: Path) -> None:
    chain = make_chain(tmp_path / "chain", "clique", 200, 4000, 4000)
    geth = Geth(tmp_path / "geth")
    # with the older layout, geth has only the last state after a restart
    geth.command("--state.scheme=path", "init", chain / "genesis.json")
    geth.command("import", chain / "blocks.rlp")
    new, static = tmp_path / "new", tmp_path / "static.json"
    options = (f"--genesis-file={chain / 'genesis.json'}", *PEERS, "--sync-mode=SNAP", f"--static-nodes-file={static}")
    with geth.running():
        static.write_text(json.dumps([geth.enode]))
        with NodeProcess(new, *options) as one:
            wait_for(lambda: head(one)[0] == 200, 120)
            assert "state complete number=136" in one.output()
            assert head(one) == head(geth)
            for address in (PAYER, STORER, (FIRST_ACCOUNT + 300).to_bytes(20, "big")):
                asked = ("eth_getProof", "0x" + address.hex(), ["0x" + 31 * "00" + "64"], "latest")
                ours, theirs = one.rpc(*asked), geth.rpc(*asked)
                assert ours["accountProof"] == theirs["accountProof"]
                assert ours["storageProof"][0]["value"] == theirs["storageProof"][0]["value"]
            wait_for(lambda: one.rpc("eth_capabilities")["receipts"]["oldestBlock"] == "0x0")
            old = one.rpc("eth_getBlockByNumber", "0x7", False)["transactions"]
            assert old == geth.rpc("eth_getBlockByNumber", "0x7", False)["transactions"] != []
            assert one.rpc("eth_getTransactionReceipt", old[0])["status"] == "0x1"
    ophion("storage", "check", f"--data-path={new}").succeeded()


def test_blocks_and_transactions_travel_both_ways(chain: Path, tmp_path: Path) -> None:
    genesis = f"--genesis-file={chain / 'genesis.json'}"
    geth = Geth(tmp_path / "geth")
    geth.command("init", chain / "genesis.json")
    key = tmp_path / "key"
    key.write_text(SIGNER.secret().hex())
    with (
        NodeProcess(tmp_path / "one", genesis, *PEERS, f"--node-private-key-file={key}") as one,
        geth.running(),
    ):
        geth.rpc("admin_addPeer", one.rpc("net_enode"))
        wait_for(lambda: head(geth)[0] > 3)
        sent = one.send(legacy_transaction(DEV_KEYS[0], 0, gas_price=10**11, chain_id=CHAIN_ID))
        receipt = wait_for(lambda: geth.rpc("eth_getTransactionReceipt", sent))
        assert receipt["status"] == "0x1"
        raw = legacy_transaction(DEV_KEYS[0], 1, gas_price=10**11, chain_id=CHAIN_ID)
        sent = geth.rpc("eth_sendRawTransaction", "0x" + raw.hex())
        assert one.receipt(sent)["status"] == "0x1"
        wait_for(lambda: head(geth) == head(one))
