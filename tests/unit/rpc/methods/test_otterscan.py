"""Tests methods of block explorers: operations and calls of a transaction, details of blocks, transactions of an
address.
"""

from __future__ import annotations

from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.contracts import deploying
from tests.unit.rpc.interface import Interface

SENDER = "0x" + DEV_KEYS[0].address.hex()
PAID = "0x" + "aa" * 20
UNKNOWN = "0x" + "ab" * 32
PAYING = bytes.fromhex("600060006000600060017" + "3" + "aa" * 20 + "5af150" + "6000600060006000f050" + "00")
"""Code that sends 1 wei to `PAID`, then creates an empty contract."""
REVERTING = bytes.fromhex("60aa60005260206000fd")


def run(dev: Interface, runtime: bytes, value: int = 0, nonce: int = 0) -> tuple[str, str, str]:
    """Return a contract, the hash of its creation and the hash of a call."""
    created = legacy_transaction(DEV_KEYS[0], nonce, to=None, gas=200_000, data=deploying(runtime))
    _, (creation,) = dev.run(dev.node.mine(created))
    contract = dev.ask("eth_getTransactionReceipt", "0x" + creation.hex())["contractAddress"]
    to = bytes.fromhex(contract[2:])
    call = legacy_transaction(DEV_KEYS[0], nonce + 1, to=to, gas=200_000, value=value, data=b"\x12\x34\x56\x78\x9a")
    _, (called,) = dev.run(dev.node.mine(call))
    return contract, "0x" + creation.hex(), "0x" + called.hex()


def test_operations_and_calls_of_a_transaction(dev: Interface) -> None:
    contract, creation, called = run(dev, PAYING, value=5)
    assert dev.ask("ots_getApiLevel") == 8
    transfer, inner = dev.ask("ots_getInternalOperations", called)
    assert transfer == {"type": 0, "from": contract, "to": PAID, "value": "0x1"}
    assert (inner["type"], inner["from"]) == (2, contract)
    calls = dev.ask("ots_traceTransaction", called)
    assert [(one["type"], one["depth"], one["value"]) for one in calls] == [
        ("CALL", 0, "0x5"),
        ("CALL", 1, "0x1"),
        ("CREATE", 1, "0x0"),
    ]
    assert calls[0]["input"] == "0x123456789a"
    assert dev.ask("ots_getTransactionError", called) == "0x"
    assert dev.ask("ots_getContractCreator", contract) == {"hash": creation, "creator": SENDER}
    assert dev.ask("ots_getContractCreator", inner["to"]) is None, "an account without code"
    assert dev.ask("ots_getContractCreator", SENDER) is None
    assert (dev.ask("ots_hasCode", contract, "latest"), dev.ask("ots_hasCode", contract, "0x0")) == (True, False)
    assert dev.ask("ots_getTransactionBySenderAndNonce", SENDER, 1) == called
    assert dev.ask("ots_getTransactionBySenderAndNonce", SENDER, 99) is None


def test_a_reverted_transaction_has_an_error_and_no_operations(dev: Interface) -> None:
    _, _, called = run(dev, REVERTING)
    assert dev.ask("ots_getTransactionError", called) == "0x" + f"{0xAA:064x}"
    assert dev.ask("ots_getInternalOperations", called) == []
    assert len(dev.ask("ots_traceTransaction", called)) == 1


def test_unknown_transactions_and_blocks(dev: Interface) -> None:
    assert dev.ask("ots_getInternalOperations", UNKNOWN) is None
    assert dev.ask("ots_traceTransaction", UNKNOWN) == []
    assert dev.ask("ots_getTransactionError", UNKNOWN) == "0x"
    assert dev.ask("ots_getBlockDetails", 99) is None
    assert dev.ask("ots_getBlockDetailsByHash", UNKNOWN) is None
    assert dev.ask("ots_getBlockTransactions", 99, 0, 5) is None
    assert dev.ask("erigon_getHeaderByNumber", "0x99") is None
    assert dev.ask("parity_pendingTransactions") == []


def test_block_details_and_pages(dev: Interface) -> None:
    transfers = [legacy_transaction(DEV_KEYS[0], nonce, to=b"\xbb" * 20, value=nonce) for nonce in range(3)]
    dev.run(dev.node.mine(*transfers))
    block = dev.ask("eth_getBlockByNumber", "0x1", True)
    details = dev.ask("ots_getBlockDetails", 1)
    assert details["block"]["transactionCount"] == 3
    assert "transactions" not in details["block"]
    assert int(details["totalFees"], 16) == sum(21_000 * int(one["gasPrice"], 16) for one in block["transactions"])
    assert details == dev.ask("ots_getBlockDetailsByHash", block["hash"])
    assert dev.ask("ots_getBlockDetails", 0)["issuance"]["issuance"] == "0x0"
    newest, oldest = dev.ask("ots_getBlockTransactions", 1, 0, 2), dev.ask("ots_getBlockTransactions", 1, 1, 2)
    assert [one["nonce"] for one in newest["fullblock"]["transactions"]] == ["0x1", "0x2"]
    assert [one["nonce"] for one in oldest["fullblock"]["transactions"]] == ["0x0"]
    assert [one["transactionIndex"] for one in newest["receipts"]] == ["0x1", "0x2"]
    assert dev.ask("ots_getBlockTransactions", 1, 9, 2)["fullblock"]["transactions"] == []
    assert dev.error("ots_getBlockTransactions", 1, 0, 0) == (-32602, "Invalid params")
    header = dev.ask("erigon_getHeaderByNumber", "0x1")
    assert header["hash"] == block["hash"]
    assert "transactions" not in header
