"""geth 1.13 accepts every block of a chain of Ophion's Clique signer, with transactions, votes and epoch blocks."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from ophion.node.node_key_file import load_key
from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.conftest import ROOT
from tests.integration.command import ophion

GETH = os.environ.get("GETH")
EXAMPLE = ROOT / "examples" / "clique"
STRANGER = "0x" + "ab" * 20

pytestmark = pytest.mark.skipif(
    GETH is None, reason="GETH does not name a geth binary (1.13.15 is the last with Clique)"
)


def geth(data: Path, *arguments: str | Path) -> str:
    assert GETH is not None
    ran = subprocess.run(
        [GETH, "--datadir", str(data), *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout + ran.stderr


def test_c_20_geth_imports_what_a_clique_signer_has_made(tmp_path: Path) -> None:
    values = json.loads((EXAMPLE / "genesis.json").read_text())
    values["config"]["clique"] |= {"epoch": 3, "epochLength": 3}
    genesis = tmp_path / "genesis.json"
    genesis.write_text(json.dumps(values))
    options = (f"--genesis-file={genesis}", f"--node-private-key-file={EXAMPLE / 'key.priv'}")
    with NodeProcess(tmp_path / "data", *options, "--rpc-http-api=ETH,CLIQUE") as node:
        hashes = [node.send(fee_transaction(DEV_KEYS[0], nonce, max_fee=10**11, tip=10**9)) for nonce in range(20)]
        # this contract stores COINBASE, which must be the signer and not the beneficiary in the header
        code = bytes.fromhex("4160005500")
        hashes.append(node.send(legacy_transaction(DEV_KEYS[1], 0, to=None, gas=100_000, gas_price=10**11, data=code)))
        for hash in hashes:
            assert node.receipt(hash)["status"] == "0x1"
        wait_for(lambda: node.height >= 5, 20)
        # the vote adds an offline second signer, so the chain stops
        node.rpc("clique_propose", STRANGER, True)
        wait_for(lambda: STRANGER in node.rpc("clique_getSigners"), 20)
        head = node.rpc("eth_getBlockByNumber", "latest", False)
        assert node.stop() == 0
    blocks = tmp_path / "blocks.rlp"
    ophion("blocks", "export", f"--to={blocks}", f"--data-path={tmp_path / 'data'}", *options).succeeded()
    geth(tmp_path / "geth", "init", genesis)
    geth(tmp_path / "geth", "import", blocks)
    shown = geth(
        tmp_path / "geth", "--nodiscover", "--maxpeers=0", "--ipcdisable", "--port=0", "--authrpc.port=0", "console",
        "--exec", "JSON.stringify([eth.blockNumber, eth.getBlock('latest').hash, clique.getSigners()])",
    )  # fmt: skip
    number, hash, signers = json.loads(json.loads(next(line for line in shown.splitlines() if line.startswith('"['))))
    assert (number, hash) == (int(head["number"], 16), head["hash"])
    assert sorted(signers) == sorted([STRANGER, "0x" + load_key(EXAMPLE / "key.priv").address.hex()])
