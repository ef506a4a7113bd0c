"""Writes the blocks and transactions of a chain into a state dump, in Anvil's format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from ophion.dev.block_json import decode_address, decode_int, decode_transaction
from ophion.dev.cheat_codes import DevNode
from ophion.native.crypto import keccak256
from ophion.native.store import Store
from ophion.primitives import rlp
from ophion.primitives.hexcodec import data
from ophion.primitives.types import Hash32

_HEADER_FIELDS = (
    "parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot", "logsBloom", "difficulty",
    "number", "gasLimit", "gasUsed", "timestamp", "extraData", "mixHash", "nonce", "baseFeePerGas", "withdrawalsRoot",
    "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot", "requestsHash",
)  # fmt: skip
_TRANSACTION_FIELDS = (
    "type", "chainId", "nonce", "gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas", "maxFeePerBlobGas", "to",
    "value", "accessList", "blobVersionedHashes", "authorizationList", "input", "r", "s", "yParity", "v", "hash",
)  # fmt: skip
_DYNAMIC_FEE = 2
_FIRST_LIST_BYTE = 0xC0


def dumped_blocks(dev: DevNode, last: int) -> tuple[list[orjson.Fragment], list[orjson.Fragment]]:
    """Return the blocks up to the number `last`, and their transactions with receipts. On a fork, blocks of the source
    are left out.
    """
    store, blocks, transactions = dev.chain.store, list[orjson.Fragment](), list[orjson.Fragment]()
    for number in range(0 if dev.fork is None else dev.fork.point.number + 1, last + 1):
        hash = store.canonical_hash(number)
        found = None if hash is None else store.block_json(hash, True, False)
        if hash is None or found is None:
            continue
        block = orjson.loads(found)
        header = {name: block[name] for name in _HEADER_FIELDS if name in block}
        signed = [_signed(one) for one in block["transactions"]]
        record = {"header": header, "transactions": signed, "ommers": [], "withdrawals": None}
        blocks.append(orjson.Fragment(orjson.dumps(record)))
        transactions += (orjson.Fragment(orjson.dumps(one)) for one in _results(store, hash, block))
    return blocks, transactions


def _signed(transaction: dict[str, Any]) -> dict[str, Any]:
    fields = {name: transaction[name] for name in _TRANSACTION_FIELDS if name in transaction}
    if decode_int(fields["type"]) >= _DYNAMIC_FEE:
        fields.pop("gasPrice", None)
    return {
        "transaction": fields,
        "impersonated_sender": transaction["from"] if _is_impersonated(transaction) else None,
    }


def _is_impersonated(transaction: dict[str, Any]) -> bool:
    r, s, sender = (decode_int(transaction[name]) for name in ("r", "s", "from"))
    return s == 1 and r in (sender, 1)


def _hash(transaction: dict[str, Any]) -> str:
    """Return the hash under which Anvil finds a transaction. For an impersonated account, the hash also covers the
    sender.
    """
    if not _is_impersonated(transaction):
        return str(transaction["hash"])
    sender = decode_address(transaction["from"])
    raw = decode_transaction(transaction, sender)
    encoded = raw if raw[0] >= _FIRST_LIST_BYTE else rlp.encode(raw)
    return data(keccak256(encoded + sender))


def _results(store: Store, block_hash: Hash32, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield receipt and outcome of each transaction. Anvil requires a call tree, so each outcome has a tree with only
    the outer call.
    """
    if not block["transactions"]:
        return
    receipts = orjson.loads(store.block_receipts_json(block_hash, False) or b"[]")
    for transaction, receipt in zip(block["transactions"], receipts, strict=True):
        is_success = receipt.get("status") != "0x0"
        outcome, gas_used = "Return" if is_success else "Revert", decode_int(receipt["gasUsed"])
        created = receipt["contractAddress"]
        call = {
            "depth": 0,
            "success": is_success,
            "caller": receipt["from"],
            "address": receipt["to"] or created,
            "maybe_precompile": None,
            "selfdestruct_address": None,
            "selfdestruct_refund_target": None,
            "selfdestruct_transferred_value": None,
            "kind": "CALL" if created is None else "CREATE",
            "value": transaction["value"],
            "data": transaction["input"],
            "output": "0x",
            "gas_used": gas_used,
            "gas_limit": decode_int(transaction["gas"]),
            "gas_refund_counter": 0,
            "status": outcome,
            "steps": [],
            "decoded": None,
        }
        yield {
            "info": {
                "transaction_hash": _hash(transaction),
                "transaction_index": decode_int(receipt["transactionIndex"]),
                "from": receipt["from"],
                "to": receipt["to"],
                "contract_address": created,
                "traces": [{"parent": None, "children": [], "idx": 0, "trace": call, "logs": [], "ordering": []}],
                "exit": outcome,
                "out": None,
                "nonce": decode_int(transaction["nonce"]),
                "gas_used": gas_used,
            },
            "receipt": {
                "type": receipt["type"],
                "status": receipt.get("status", "0x1"),
                "cumulativeGasUsed": receipt["cumulativeGasUsed"],
                "logs": [{name: log[name] for name in ("address", "topics", "data")} for log in receipt["logs"]],
                "logsBloom": receipt["logsBloom"],
            },
            "block_hash": block["hash"],
            "block_number": decode_int(block["number"]),
        }
