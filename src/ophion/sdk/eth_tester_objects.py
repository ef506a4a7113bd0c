"""Blocks, transactions, receipts and logs of JSON-RPC in the form that eth-tester expects from its backends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_BYTES = re.compile(r"hash|root|coinbase|miner|extra_data|^data$|^input$|^from$|^to$|address|sha3_uncles|^nonce$")
_EXTRA_BYTES = 32


def snake_case(name: str) -> str:
    """Convert a camel-case name to snake case: `gasUsed` becomes `gas_used`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _value(name: str, value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("0x"):
        return value
    return bytes.fromhex(value[2:]) if _BYTES.search(name) else int(value, 16)


def as_block(found: Mapping[str, Any], full_transactions: bool) -> dict[str, Any]:
    """Convert a JSON-RPC block with full transactions to the block object that eth-tester expects."""
    block: dict[str, Any] = {}
    for key, value in found.items():
        name = {"miner": "coinbase"}.get(key, snake_case(key))
        block[name] = _value(name, value)
    is_pending = found.get("hash") is None
    transactions = found["transactions"]
    block["transactions"] = [
        as_transaction(one) if full_transactions else bytes.fromhex(one["hash"][2:]) for one in transactions
    ]
    block["uncles"] = [bytes.fromhex(one[2:]) for one in found["uncles"]]
    block["withdrawals"] = [
        {snake_case(key): _value(snake_case(key), value) for key, value in one.items()}
        for one in found.get("withdrawals") or ()
    ]
    block["extra_data"] = block["extra_data"].rjust(_EXTRA_BYTES, b"\0")
    block.setdefault("total_difficulty", block["difficulty"])
    if is_pending:
        block["hash"] = bytes(32)
    if block.get("nonce") is None:
        block["nonce"] = bytes(8)
    return block


def as_transaction(found: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a JSON-RPC transaction to the transaction object that eth-tester expects."""
    names = {"input": "data"}
    made: dict[str, Any] = {}
    for key, value in found.items():
        name = names.get(key, snake_case(key))
        if name in ("public_key", "raw", "block_timestamp", "creates", "standard_v", "condition"):
            continue
        made[name] = int(value, 16) if name == "nonce" else _value(name, value)
    made["to"] = made.get("to") or b""
    if "access_list" in made:
        made["access_list"] = tuple(
            (bytes.fromhex(one["address"][2:]), tuple(int(slot, 16) for slot in one["storageKeys"]))
            for one in made["access_list"] or ()
        )
    if made["type"]:
        made["v"] = made["y_parity"]
    else:
        for name in ("chain_id", "y_parity"):
            made.pop(name, None)
    return made


def as_receipt(found: Mapping[str, Any], is_pending: bool) -> dict[str, Any]:
    """Convert a JSON-RPC receipt to the receipt that eth-tester expects. The receipt of a pending transaction has no
    block.
    """
    made = {snake_case(key): _value(snake_case(key), value) for key, value in found.items()}
    made["logs"] = [as_log(one, is_pending) for one in found["logs"]]
    made["to"] = made.get("to") or b""
    made["state_root"] = made["status"].to_bytes(1, "big")
    for name in ("logs_bloom", "revert_reason", "root"):
        made.pop(name, None)
    if is_pending:
        made.update(block_hash=None, block_number=None, transaction_index=None)
    return made


def as_log(found: Mapping[str, Any], is_pending: bool) -> dict[str, Any]:
    """Convert a JSON-RPC log to the log object that eth-tester expects."""
    made = {snake_case(key): _value(snake_case(key), value) for key, value in found.items()}
    made["topics"] = [bytes.fromhex(one[2:]) for one in found["topics"]]
    made["type"] = "pending" if is_pending else "mined"
    for name in ("removed", "block_timestamp"):
        made.pop(name, None)
    if is_pending:
        made.update(block_hash=None, block_number=None, transaction_index=None)
    return made


_WIRE_NAMES = {
    "from": "from",
    "to": "to",
    "gas": "gas",
    "gas_price": "gasPrice",
    "max_fee_per_gas": "maxFeePerGas",
    "max_priority_fee_per_gas": "maxPriorityFeePerGas",
    "value": "value",
    "data": "data",
    "nonce": "nonce",
    "chain_id": "chainId",
}


def wire_request(transaction: Mapping[str, Any]) -> dict[str, Any]:
    """Return a transaction of eth-tester as a request of JSON-RPC."""
    made: dict[str, Any] = {}
    for name, value in transaction.items():
        if name == "access_list":
            made["accessList"] = [
                {"address": "0x" + address.hex(), "storageKeys": [f"0x{slot:064x}" for slot in slots]}
                for address, slots in value
            ]
        elif name in _WIRE_NAMES and not (name == "to" and not value):
            made[_WIRE_NAMES[name]] = hex(value) if isinstance(value, int) else "0x" + value.hex()
    return made
