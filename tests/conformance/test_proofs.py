"""Proofs of transactions on chains of other clients: Ophion and the standalone Python verifier agree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ophion.errors import ProofError
from ophion.node.config import NodeConfig
from ophion.proofs.bundle import ProofBundle
from ophion.proofs.trust_anchor import read_trust
from ophion.proofs.verify import verify_bundle
from tests.conftest import DATA, SHARED
from tests.unit.proofs.standalone import verify
from tests.unit.rpc.interface import Interface, import_chain, open_interface

UNPROVEN = {"goquorum-qbft-gas-limit-jump", "besu-qbft-contract"}
"""Chains without a proof: a chain that Ophion refuses, and a chain whose validators come from a contract."""
SAMPLES = [folder for folder in sorted((DATA / "chains").iterdir()) if folder.name not in UNPROVEN]
WHOLE = [folder for folder in sorted((SHARED / "fixtures/chains").glob("*/")) if folder.name not in UNPROVEN]
SMALL_VERIFIER = 2
"""Number of proofs per chain that the standalone verifier checks too. This verifier is slow without the package
coincurve.
"""


def transactions(interface: Interface) -> list[str]:
    head = int(interface.ask("eth_blockNumber"), 16)
    blocks = [interface.ask("eth_getBlockByNumber", hex(number), False) for number in range(1, head + 1)]
    return [one for block in blocks for one in block["transactions"]]


def check_proofs(folder: Path, path: Path) -> int:
    text = (folder / "genesis.json").read_bytes()
    trust = read_trust(text)
    proven = 0
    genesis = import_chain(path, folder / "genesis.json", folder / "blocks.rlp")
    with open_interface(path, genesis, NodeConfig()) as interface:
        for tx_hash in transactions(interface):
            receipt: dict[str, Any] = interface.ask("eth_getTransactionReceipt", tx_hash)
            wanted = {receipt["from"]: [], receipt["to"] or receipt["contractAddress"]: ["0x0", "0x1"]}
            try:
                bundle = ProofBundle.from_object(interface.ask("eth_getProofBundle", tx_hash, wanted))
            except AssertionError as error:
                assert "confirmations" in str(error)  # the last blocks of a Clique chain have too few confirmations
                continue
            found = verify_bundle(bundle, trust).as_object()
            compare(interface, found, receipt)
            if proven < SMALL_VERIFIER:
                assert verify(bundle.encode(), json.loads(text)) == found
            proven += 1
    return proven


def compare(interface: Interface, found: dict[str, Any], receipt: dict[str, Any]) -> None:
    transaction = found["transaction"]
    assert found["block"]["hash"] == receipt["blockHash"]
    assert transaction["from"] == receipt["from"]
    assert transaction["to"] == receipt["to"]
    assert transaction["cumulativeGasUsed"] == receipt["cumulativeGasUsed"]
    assert (transaction["status"] == "0x01") == (receipt["status"] == "0x1")
    assert [log["data"] for log in transaction["logs"]] == [log["data"] for log in receipt["logs"]]
    assert [log["topics"] for log in transaction["logs"]] == [log["topics"] for log in receipt["logs"]]
    for account in found["accounts"]:
        address, block = account["address"], receipt["blockNumber"]
        assert account["balance"] == interface.ask("eth_getBalance", address, block)
        assert account["nonce"] == interface.ask("eth_getTransactionCount", address, block)
        for slot in account["slots"]:
            assert int(slot["value"], 16) == int(interface.ask("eth_getStorageAt", address, slot["key"], block), 16)


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda one: one.name)
def test_transactions_at_the_beginning_of_a_chain(folder: Path, tmp_path: Path) -> None:
    check_proofs(folder, tmp_path)


@pytest.mark.skipif(not WHOLE, reason="public test data ../shared/fixtures/chains is not here")
@pytest.mark.parametrize("folder", WHOLE, ids=lambda one: one.name)
def test_transactions_of_a_whole_chain(folder: Path, tmp_path: Path) -> None:
    # the chain must have a transaction, except the IBFT 2.0 chain of Besu 25, which has none
    assert (check_proofs(folder, tmp_path) > 0) == (folder.name != "besu25-ibft2-shanghai-cancun")


def test_validators_of_a_contract_need_the_hash_of_the_block(tmp_path: Path) -> None:
    folder = DATA / "chains/besu-qbft-contract"
    text = (folder / "genesis.json").read_bytes()
    genesis = import_chain(tmp_path, folder / "genesis.json", folder / "blocks.rlp")
    with open_interface(tmp_path, genesis, NodeConfig()) as interface:
        head = interface.ask("eth_blockNumber")
        whole = ProofBundle.from_object(interface.ask("eth_getProofBundle", None, {}, head))
        with pytest.raises(ProofError, match="a contract names the validators"):
            verify_bundle(whole, read_trust(text))
        short = ProofBundle.from_object(interface.ask("eth_getProofBundle", None, {}, head, True))
    known = {"number": int(head, 16), "hash": "0x" + short.hash.hex(), "validators": []}
    assert verify_bundle(short, read_trust(text, json.dumps(known).encode())).hash == short.hash
    assert verify(short.encode(), json.loads(text), known)["block"]["number"] == head
