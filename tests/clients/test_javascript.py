"""Runs ethers and viem, unmodified: every transaction type, the errors that they recognise, and their subscriptions
under load.

The packages come from the lock file of examples/javascript-client, or from the folder `CLIENT_PACKAGES`. If `GETH`
names a geth, the same scripts run against geth, and the results are compared. `OPHION_WATCH_SECONDS` sets the duration
of the subscription test; the default is a few seconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import ckzg
import eth_account
import pytest

from ophion.testing.node_process import NodeProcess
from tests.clients.geth_dev import CHAIN_ID, IS_THERE, GethDev, has_prague
from tests.conftest import ROOT
from tests.integration.test_node_examples import javascript

SCRIPTS = Path(__file__).parent / "javascript"
WATCH_SECONDS = float(os.environ.get("OPHION_WATCH_SECONDS", "3"))
FIRST = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
"""Address whose key the scripts have."""
LIBRARIES = pytest.mark.parametrize("library", ["ethers", "viem"])


def told(script: str, tmp_path: Path, *options: str, given: dict[str, Any] | None = None) -> dict[str, Any]:
    """Run a script against a new `ophion dev` and return its result."""
    # the first blob transaction takes seconds, and on a busy machine more than half a minute
    patient = "--http-timeout-seconds=90"
    dev = ("--rpc-ws-port=0", "--graphql-http-enabled=false", "--logging=WARN", patient, *options)
    with NodeProcess(tmp_path / "data", *dev, command=("dev",)) as node:
        ports = node.ports
        return said_of(
            f"http://127.0.0.1:{ports['json-rpc']}", f"ws://127.0.0.1:{ports['ws-rpc']}", script, tmp_path, given
        )


def told_by_geth(script: str, tmp_path: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Run the same script against a new `geth --dev` and return its result."""
    if not IS_THERE:
        pytest.skip("GETH does not name a geth binary to compare with")
    with GethDev(tmp_path / "geth", FIRST) as geth:
        return said_of(
            geth.http_url, geth.ws_url, script, tmp_path, {"chainId": CHAIN_ID, "fee": "5000000000", **given}
        )


def said_of(http: str, websocket: str, script: str, tmp_path: Path, given: dict[str, Any] | None) -> dict[str, Any]:
    folder = os.environ.get("CLIENT_PACKAGES") or javascript("javascript-client")
    file = tmp_path / "given.json"
    file.write_text(json.dumps(given or {}))
    ran = subprocess.run(
        ["node", str(SCRIPTS / script), http, websocket, str(folder), str(file)],
        capture_output=True,
        text=True,
        timeout=120 + 2 * WATCH_SECONDS,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-3000:]
    return dict(json.loads(line) for line in ran.stdout.splitlines())


@cache
def blob() -> dict[str, str]:
    """Return a blob with commitment, proof and hash. Neither library can compute these values."""
    package = Path(eth_account.__file__).parent / "typed_transactions/blob_transactions"
    setup = ckzg.load_trusted_setup(str(package / "kzg_trusted_setup.txt"), 0)
    data = b"\x00" + b"ophion".ljust(31, b"\x00") + bytes(131072 - 32)
    commitment = ckzg.blob_to_kzg_commitment(data, setup)
    proof = ckzg.compute_blob_kzg_proof(data, commitment, setup)
    hash = b"\x01" + hashlib.sha256(commitment).digest()[1:]
    parts = {"blob": data, "commitment": commitment, "proof": proof, "hash": hash}
    return {name: "0x" + part.hex() for name, part in parts.items()}


@LIBRARIES
def test_every_type_of_transaction(library: str, tmp_path: Path) -> None:
    said = told(f"{library}-types.mjs", tmp_path, "--dev-fork=prague", given={"blob": blob()})
    kinds = {"ethers": [2, 0, 1, 2, 4, 3], "viem": ["eip1559", "legacy", "eip2930", "eip1559", "eip7702", "eip4844"]}
    names = ("default", "0", "1", "2", "4", "3")
    assert [said[name]["type"] for name in names] == kinds[library]
    assert {said[name]["status"] for name in names} == {1 if library == "ethers" else "success"}
    assert all(int(said[name]["price"]) >= 7 for name in names)
    assert said["delegated"] == "0xef0100" + "00" * 19 + "d0"
    assert said["unlocked"].lower() == "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"


@LIBRARIES
def test_the_same_through_the_one_address_of_the_page(library: str, tmp_path: Path) -> None:
    dev = ("--rpc-ws-port=0", "--graphql-http-enabled=false", "--logging=WARN", "--page-http-port=0")
    with NodeProcess(tmp_path / "data", *dev, command=("dev",)) as node:
        address = f"127.0.0.1:{node.ports['page-http']}"
        said = said_of(f"http://{address}/jsonrpc", f"ws://{address}/jsonws", f"{library}-types.mjs", tmp_path, None)
    assert {said[name]["status"] for name in ("default", "0", "1", "2", "4")} == {
        1 if library == "ethers" else "success"
    }


@LIBRARIES
def test_the_newest_fork_too(library: str, tmp_path: Path) -> None:
    """On the newest fork, the node also accepts blobs in the form that the libraries send: one proof per blob, not per
    cell.
    """
    said = told(f"{library}-types.mjs", tmp_path, given={"blob": blob()})
    assert {said[name]["status"] for name in ("default", "0", "1", "2", "3", "4")} == {
        1 if library == "ethers" else "success"
    }


ETHERS_ERRORS = {
    "nonce too low": "NONCE_EXPIRED",
    "insufficient funds": "INSUFFICIENT_FUNDS",
    "value above balance": "INSUFFICIENT_FUNDS",
    "intrinsic gas": "UNKNOWN_ERROR",
    "below base fee": "UNKNOWN_ERROR",
    "tip above fee": "BAD_DATA",
    "gas limit": "UNKNOWN_ERROR",
    "other chain": "UNKNOWN_ERROR",
    "waiting": "taken",
    "known": "UNKNOWN_ERROR",
    "underpriced": "REPLACEMENT_UNDERPRICED",
    "unknown method": "UNSUPPORTED_OPERATION",
}
"""Error names of ethers. ethers has names for four errors, and passes other errors on unchanged."""
VIEM_ERRORS = {
    "nonce too low": "NonceTooLowError",
    "insufficient funds": "InsufficientFundsError",
    "value above balance": "InsufficientFundsError",
    "intrinsic gas": "IntrinsicGasTooLowError",
    "below base fee": "FeeCapTooLowError",
    "tip above fee": "TipAboveFeeCapError",
    "gas limit": "LimitExceededRpcError",
    "waiting": "taken",
    "known": "NonceTooLowError",
    "underpriced": "InvalidInputRpcError",
    "unknown method": "MethodNotFoundRpcError",
}


def test_ethers_recognises_refusals(tmp_path: Path) -> None:
    assert told("ethers-errors.mjs", tmp_path) == ETHERS_ERRORS


def test_viem_recognises_refusals(tmp_path: Path) -> None:
    assert told("viem-errors.mjs", tmp_path) == VIEM_ERRORS


_WAITS = "geth keeps it until the base fee has fallen; here it is refused, as the interface has it (-32009)"
OTHERWISE = {
    "ethers": {"below base fee": _WAITS},
    "viem": {
        "below base fee": _WAITS,
        "gas limit": "the code is that of the original (-32005), which viem knows; geth has -32000 for everything",
    },
}
"""Errors for which a library behaves differently than with geth, with the reason."""


@LIBRARIES
def test_refusals_are_what_they_are_with_geth(library: str, tmp_path: Path) -> None:
    theirs = told_by_geth(f"{library}-errors.mjs", tmp_path, {})
    ours = {"ethers": ETHERS_ERRORS, "viem": VIEM_ERRORS}[library]
    assert {name for name in ours if ours[name] != theirs[name]} == OTHERWISE[library].keys(), theirs
    assert theirs.keys() == ours.keys()


@LIBRARIES
def test_types_are_what_they_are_with_geth(library: str, tmp_path: Path) -> None:
    """Transactions of every type give the same results as with geth.

    Types 3 and 4 are included if this geth has them.
    """
    # set the gas, because geth 1.15 ignores the authorization when it estimates a type 4 transaction
    new = {"gas": "100000", "blob": blob()} if IS_THERE and has_prague() else {"delegates": False}
    theirs = told_by_geth(f"{library}-types.mjs", tmp_path, {**new, "fills": False})
    ours = told(f"{library}-types.mjs", tmp_path, "--dev-fork=prague", given={"blob": blob()})
    names = ["default", "0", "1", "2", *(["4", "3"] if "4" in theirs else [])]
    assert {name: (ours[name]["type"], ours[name]["status"]) for name in names} == {
        name: (theirs[name]["type"], theirs[name]["status"]) for name in names
    }
    assert theirs.get("delegated", ours["delegated"]) == ours["delegated"]


def test_pantheon_error_texts_are_not_recognised(tmp_path: Path) -> None:
    """The libraries do not recognise the error texts of Pantheon 1.2, which `--rpc-error-wording=original` selects."""
    said = told("viem-errors.mjs", tmp_path, "--rpc-error-wording=original")
    assert said["insufficient funds"] != "InsufficientFundsError"
    assert said["waiting"] == "taken"


@LIBRARIES
def test_blocks_logs_and_receipts_under_load(library: str, tmp_path: Path) -> None:
    contract = json.loads((ROOT / "examples/python-client/Counter.json").read_text())
    given = {"abi": contract["abi"], "bytecode": contract["bytecode"], "seconds": WATCH_SECONDS}
    said = told(f"{library}-watch.mjs", tmp_path, given=given)
    assert said["sent"] > 0
    assert int(said["count"]) == said["sent"] == said["logs"] == said["polled"]
    assert said["every block in order"]
