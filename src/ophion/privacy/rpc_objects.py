"""JSON of private receipts, logs and transactions (privacy.md 9, 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ophion.enclave.encoding import base64_text
from ophion.native.privacy import PrivateReceiptRecord, PrivateTransaction
from ophion.primitives.hexcodec import data, quantity

if TYPE_CHECKING:
    from ophion.privacy.payloads import MarkerPosition


def receipt_object(record: PrivateReceiptRecord, place: MarkerPosition) -> dict[str, Any]:
    """Return a private receipt as JSON, with the fields of Pantheon 1.2 and of Besu 21.10."""
    found: dict[str, Any] = {
        "contractAddress": None if record.created is None else data(record.created),
        "from": data(record.sender),
        "to": None if record.to is None else data(record.to),
        "output": data(record.output),
        "logs": log_objects(record.matching((), (), 0, record.log_count), place),
        "blockHash": data(place.block),
        "blockNumber": quantity(place.number),
        "transactionHash": data(place.hash),
        "transactionIndex": quantity(place.index),
        "commitmentHash": data(place.hash),
        "status": quantity(record.status),
        "privateFrom": base64_text(record.private_from),
        "privacyGroupId": base64_text(record.group),
        "logsBloom": data(record.logs_bloom),
    }
    if record.private_for is not None:
        found["privateFor"] = [base64_text(key) for key in record.private_for]
    if record.revert_data:
        found["revertReason"] = data(record.revert_data)
    return found


def log_objects(
    logs: Sequence[tuple[int, bytes, list[bytes], bytes]], place: MarkerPosition, is_removed: bool = False
) -> list[dict[str, Any]]:
    """Return the logs of a private transaction as JSON. The logs have the block and index of the marker."""
    return [
        {
            "address": data(address),
            "topics": [data(topic) for topic in topics],
            "data": data(content),
            "blockHash": data(place.block),
            "blockNumber": quantity(place.number),
            "transactionHash": data(place.hash),
            "transactionIndex": quantity(place.index),
            "logIndex": quantity(index),
            "removed": is_removed,
        }
        for index, address, topics, content in logs
    ]


def _fees(transaction: PrivateTransaction) -> dict[str, Any]:
    """Return JSON keys for type and fees of a type 2 transaction. As in Besu 21.10, a legacy transaction has none."""
    if transaction.max_priority_fee is None:
        return {}
    return {
        "type": "0x2",
        "chainId": quantity(transaction.chain_id or 0),
        "maxFeePerGas": quantity(transaction.gas_price),
        "maxPriorityFeePerGas": quantity(transaction.max_priority_fee),
    }


def transaction_object(transaction: PrivateTransaction) -> dict[str, Any]:
    """Return a private transaction as JSON, with its own hash and its recipients."""
    v, r, s = transaction.signature
    sender = transaction.sender
    found: dict[str, Any] = {
        "from": None if sender is None else data(sender),
        "gas": quantity(transaction.gas_limit),
        "gasPrice": quantity(transaction.gas_price),
        **_fees(transaction),
        "hash": data(transaction.hash),
        "input": data(transaction.data),
        "nonce": quantity(transaction.nonce),
        "to": None if transaction.to is None else data(transaction.to),
        "value": quantity(transaction.value),
        "v": quantity(v),
        "r": quantity(r),
        "s": quantity(s),
        "privateFrom": base64_text(transaction.private_from),
    }
    if transaction.private_for is not None:
        found["privateFor"] = [base64_text(key) for key in transaction.private_for]
    else:
        found["privacyGroupId"] = base64_text(transaction.privacy_group_id or b"")
    return found | {"restriction": transaction.restriction.decode("ascii", "replace")}
