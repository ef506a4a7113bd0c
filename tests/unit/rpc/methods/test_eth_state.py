"""Tests balances, code, storage and proofs at every kind of block parameter."""

from __future__ import annotations

from typing import Any

import pytest

from ophion.native.tries import verify_proof
from ophion.primitives import rlp
from ophion.primitives.types import EMPTY_CODE_HASH, EMPTY_TRIE_ROOT
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.contracts import STORING, deploying
from tests.unit.rpc.interface import Interface

RICH = "0x" + DEV_KEYS[1].address.hex()
POOR = "0x" + "99" * 20
CONTRACT = "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f"
WORD = "0x" + "{:064x}"


def test_a_balance_can_be_asked_at_every_block(dev: Interface) -> None:
    to = bytes.fromhex("99" * 20)
    header, _ = dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[1], 0, to=to, value=5)))
    dev.run(dev.node.seal())
    assert dev.ask("eth_getBalance", POOR) == "0x5"
    assert dev.ask("eth_getBalance", POOR, "latest") == "0x5"
    assert dev.ask("eth_getBalance", POOR, "earliest") == "0x0"
    assert dev.ask("eth_getBalance", POOR, "0x0") == "0x0"
    assert dev.ask("eth_getBalance", POOR, "1") == "0x5"
    assert dev.ask("eth_getBalance", POOR, 1) == "0x5"
    assert dev.ask("eth_getBalance", POOR, "0x" + header.hash.hex()) == "0x5"
    assert dev.ask("eth_getBalance", POOR, {"blockHash": "0x" + header.hash.hex(), "requireCanonical": True}) == "0x5"
    assert dev.ask("eth_getBalance", POOR, {"blockNumber": "0x1"}) == "0x5"
    assert dev.ask("eth_getBalance", "99" * 20, None) == "0x5"


@pytest.mark.parametrize("name", ["eth_getBalance", "eth_getCode", "eth_getTransactionCount"])
def test_a_block_that_is_not_there_gives_null(dev: Interface, name: str) -> None:
    assert dev.ask(name, RICH, "0x63") is None
    assert dev.ask(name, RICH, "0x" + "ab" * 32) is None
    assert dev.ask(name, RICH, {"blockHash": "0x" + "ab" * 32, "requireCanonical": True}) is None
    assert dev.error(name, RICH, "newest") == (-32602, "Invalid params")
    assert dev.ask(name, RICH, "finalized") == dev.ask(name, RICH, "safe") == dev.ask(name, RICH, "latest")


def test_pending_shows_what_the_next_block_would_bring(dev: Interface) -> None:
    to = bytes.fromhex("99" * 20)
    dev.run(dev.node.send(legacy_transaction(DEV_KEYS[1], 0, to=to, value=5)))
    assert dev.ask("eth_getBalance", POOR, "latest") == "0x0"
    assert dev.ask("eth_getBalance", POOR, "pending") == "0x5"
    dev.run(dev.node.send(legacy_transaction(DEV_KEYS[1], 1, to=to, value=6)))
    assert dev.ask("eth_getBalance", POOR, "pending") == "0xb"


def test_the_pending_nonce_is_the_first_free_one(dev: Interface) -> None:
    dev.run(dev.node.send(*(legacy_transaction(DEV_KEYS[1], nonce) for nonce in (0, 1, 3))))
    assert dev.ask("eth_getTransactionCount", RICH, "latest") == "0x0"
    assert dev.ask("eth_getTransactionCount", RICH, "pending") == "0x2"
    assert dev.ask("eth_getTransactionCount", POOR, "pending") == "0x0"
    assert dev.ask("eth_getTransactionCount", POOR, "-0x1") == "0x0"


def test_code_and_storage_of_a_contract(dev: Interface) -> None:
    create = legacy_transaction(DEV_KEYS[1], 0, to=None, gas=200_000, data=deploying(STORING))
    _, (created,) = dev.run(dev.node.mine(create))
    contract = dev.ask("eth_getTransactionReceipt", "0x" + created.hex())["contractAddress"]
    assert dev.ask("eth_getCode", contract) == "0x" + STORING.hex()
    assert dev.ask("eth_getCode", contract, "earliest") == "0x"
    assert dev.ask("eth_getStorageAt", contract, "0x0") == WORD.format(0)
    dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[1], 1, to=bytes.fromhex(contract[2:]), gas=100_000)))
    assert dev.ask("eth_getStorageAt", contract, "0") == WORD.format(1)
    assert dev.ask("eth_getStorageAt", contract, WORD.format(0), "0x1") == WORD.format(0)
    assert dev.ask("eth_getStorageAt", POOR, "0x0") == WORD.format(0)


def test_several_words_are_read_at_once(sample: Interface) -> None:
    found = sample.ask("eth_getStorageValues", {CONTRACT: ["0x4", "0x63"], POOR: ["0x0"]}, "latest")
    assert found == {CONTRACT: ["0xaabbcc" + "f" * 56 + "ee", WORD.format(0)], POOR: [WORD.format(0)]}
    for wrong in ({}, [], {CONTRACT: "0x1"}, {CONTRACT: []}):
        assert sample.error("eth_getStorageValues", wrong, "latest")[0] == -32602
    many = {CONTRACT: [hex(slot) for slot in range(1025)]}
    assert sample.error("eth_getStorageValues", many) == (-38026, "Number of storage keys exceeds 1024")
    many[CONTRACT].pop()
    assert len(sample.ask("eth_getStorageValues", many)[CONTRACT]) == 1024


def test_a_proof_leads_from_the_state_root_to_account_and_storage(sample: Interface) -> None:
    block = sample.ask("eth_getBlockByNumber", "latest", False)
    proof = sample.ask("eth_getProof", CONTRACT, ["0x4", WORD.format(4), "0x999"], "latest")
    nodes = [bytes.fromhex(node[2:]) for node in proof["accountProof"]]
    account = verify_proof(bytes.fromhex(block["stateRoot"][2:]), bytes.fromhex(CONTRACT[2:]), nodes)
    assert account is not None
    fields: Any = rlp.decode(account)
    assert proof["storageHash"] == "0x" + fields[2].hex()
    assert proof["codeHash"] == "0x" + fields[3].hex()
    assert [entry["key"] for entry in proof["storageProof"]] == ["0x4", WORD.format(4), "0x999"]
    assert [entry["value"] for entry in proof["storageProof"]] == ["0xaabbcc" + "f" * 56 + "ee"] * 2 + ["0x0"]
    slot = bytes(31) + b"\x04"
    slot_nodes = [bytes.fromhex(node[2:]) for node in proof["storageProof"][0]["proof"]]
    assert verify_proof(fields[2], slot, slot_nodes) == rlp.encode(bytes.fromhex("aabbcc" + "f" * 56 + "ee"))


def test_an_account_that_is_not_there_has_a_proof_of_absence(sample: Interface) -> None:
    block = sample.ask("eth_getBlockByNumber", "latest", False)
    proof = sample.ask("eth_getProof", POOR, [], "latest")
    nodes = [bytes.fromhex(node[2:]) for node in proof["accountProof"]]
    assert verify_proof(bytes.fromhex(block["stateRoot"][2:]), bytes.fromhex(POOR[2:]), nodes) is None
    assert (proof["balance"], proof["nonce"], proof["storageProof"]) == ("0x0", "0x0", [])
    assert proof["codeHash"] == "0x" + EMPTY_CODE_HASH.hex()
    assert proof["storageHash"] == "0x" + EMPTY_TRIE_ROOT.hex()
    assert sample.ask("eth_getProof", POOR, [], "0x99") is None
    for wrong in ("0x1", [5], None):
        assert sample.error("eth_getProof", POOR, wrong, "latest")[0] == -32602
