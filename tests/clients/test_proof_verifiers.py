"""The standalone verifiers of examples/proof, in Python and JavaScript, agree with Ophion on good and changed proofs.

JavaScript needs the packages of examples/javascript-client, or the folder `CLIENT_PACKAGES`. `OPHION_PROOF_CHANGES`
sets the number of changed bundles of each kind; the default is small, because the Python verifier is slow without
coincurve.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from ophion.errors import ProofError
from ophion.node.config import NodeConfig
from ophion.proofs.bundle import ProofBundle
from ophion.proofs.trust_anchor import read_trust
from ophion.proofs.verify import verify_bundle
from tests.conftest import DATA, ROOT
from tests.integration.test_node_examples import javascript
from tests.unit.proofs.standalone import Refused, verify
from tests.unit.rpc.interface import import_chain, open_interface

CHANGES = int(os.environ.get("OPHION_PROOF_CHANGES", "40"))
KINDS = ["besu-ibft2", "besu-ibft2-transitions", "besu-qbft", "besu26-qbft-osaka", "besu-clique", "geth-clique"]
DRIVER = """
import { readFileSync } from "node:fs";
import { verify, Refused } from "./verify.mjs";
const genesis = JSON.parse(readFileSync("genesis.json"));
const answers = JSON.parse(readFileSync("bundles.json")).map((text) => {
  const start = performance.now();
  try {
    return { proven: verify(Buffer.from(text, "hex").toString("latin1"), genesis), ms: performance.now() - start };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { refused: error.message };
  }
});
console.log(JSON.stringify(answers));
"""


def transaction_proof(folder: Path, path: Path) -> bytes:
    """Return a bundle with a transaction if the chain has one, an account and a missing account."""
    genesis = import_chain(path, folder / "genesis.json", folder / "blocks.rlp")
    with open_interface(path, genesis, NodeConfig()) as interface:
        head = int(interface.ask("eth_blockNumber"), 16)
        blocks = (interface.ask("eth_getBlockByNumber", hex(number), False) for number in range(1, head + 1))
        mined = [one for block in blocks for one in block["transactions"]]
        chosen = mined[len(mined) // 2] if mined else None
        accounts = {"0x" + account.hex(): ["0x0"] for account in (genesis.accounts[0].address, b"\x99" * 20)}
        bundle = interface.ask("eth_getProofBundle", chosen, accounts, hex(head - 8))
    return ProofBundle.from_object(bundle).encode()


@pytest.mark.parametrize("kind", KINDS)
def test_the_verifiers_agree_on_good_and_changed_bundles(kind: str, tmp_path: Path) -> None:
    packages = Path(os.environ.get("CLIENT_PACKAGES") or javascript("javascript-client"))
    folder = DATA / "chains" / kind
    (tmp_path / "data").mkdir()
    good = transaction_proof(folder, tmp_path / "data")
    genesis = (folder / "genesis.json").read_bytes()
    chance = random.Random(kind)
    # verify a valid bundle twice, because the first verification in JavaScript also compiles code
    bundles = [good, good]
    for _ in range(CHANGES):
        changed = bytearray(good)
        changed[chance.randrange(len(good))] ^= chance.randrange(1, 256)
        bundles.append(bytes(changed))
    shutil.copy(ROOT / "examples/proof/verify.mjs", tmp_path)
    (tmp_path / "node_modules").symlink_to(packages / "node_modules")
    (tmp_path / "genesis.json").write_bytes(genesis)
    (tmp_path / "bundles.json").write_text(json.dumps([bundle.hex() for bundle in bundles]))
    (tmp_path / "driver.mjs").write_text(DRIVER)
    ran = subprocess.run(["node", "driver.mjs"], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    cold, first, *others = json.loads(ran.stdout)
    trust, parsed = read_trust(genesis), json.loads(genesis)
    began = time.perf_counter()
    statement = verify_bundle(ProofBundle.decode(good), trust).as_object()
    took = time.perf_counter() - began
    assert cold["proven"] == first["proven"] == statement
    began = time.perf_counter()
    assert verify(good, parsed) == statement
    print(
        f"{kind}: {len(good)} bytes; Ophion {took * 1e3:.1f} ms, Python {(time.perf_counter() - began) * 1e3:.1f} ms,"
    )
    print(f"JavaScript {first['ms']:.1f} ms, the first time {cold['ms']:.1f} ms")
    for changed_bundle, answer in zip(bundles[2:], others, strict=True):
        assert answer["refused"]
        with pytest.raises(ProofError):
            verify_bundle(ProofBundle.decode(changed_bundle), trust)
        with pytest.raises(Refused):
            verify(changed_bundle, parsed)
