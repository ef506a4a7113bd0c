"""Answers in the form of older clients (`--rpc-answer-fields`).

Clients of the London era do not know `blockTimestamp` in transactions and logs, nor blob fees in `eth_feeHistory`. Besu
had no `yParity` and wrote storage keys in `eth_getProof` as bytes. geth writes whole ratios without a point. GoQuorum
is a geth 1.10.3 with a field of its own in receipts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from ophion.rpc.schema.answer_fields import AnswerFields
from ophion.rpc.schema.method_table import BoundMethod, MethodTable

_BLOCK_TIMESTAMP: Final = re.compile(rb',"blockTimestamp":(?:"0x[0-9a-f]+"|null)')
"""Matches the member `blockTimestamp` of an encoded object. The match includes the comma before the member, which is
never the first. The pattern never matches inside a JSON string, because quotes in strings are escaped.
"""
_PARITY: Final = re.compile(rb',"yParity":"0x[01]"')
_TRANSACTIONS: Final = frozenset(
    {
        "eth_getBlockByHash",
        "eth_getBlockByNumber",
        "eth_getTransactionByBlockHashAndIndex",
        "eth_getTransactionByBlockNumberAndIndex",
        "eth_getTransactionByHash",
        "eth_getTransactionBySenderAndNonce",
        "eth_pendingTransactions",
    }
)
_RECEIPTS: Final = frozenset({"eth_getBlockReceipts", "eth_getTransactionReceipt"})
_LOGS: Final = frozenset(
    {
        "eth_getFilterChanges",
        "eth_getFilterLogs",
        "eth_getLogs",
        "priv_getFilterChanges",
        "priv_getFilterLogs",
        "priv_getLogs",
    }
)
_BLOB_FIELDS: Final = ("baseFeePerBlobGas", "blobGasUsedRatio")

Change = Callable[[bytes], bytes]


def older_answers(table: MethodTable, fields: AnswerFields) -> MethodTable:
    """Return a table whose methods answer with the fields of an older client."""
    return table if fields is AnswerFields.CURRENT else table.map(lambda name, bound: _wrapped(name, bound, fields))


def _wrapped(name: str, bound: BoundMethod, fields: AnswerFields) -> BoundMethod:
    change = _change(name, fields)
    if change is None:
        return bound
    encode = bound.encode

    return bound._replace(encode=lambda value: _changed(encode(value), change))


def _changed(result: Any, change: Callable[[bytes], bytes]) -> Any:
    """Apply `change` to an encoded result. Streamed results are returned unchanged."""
    return change(result) if isinstance(result, bytes) else result


def _change(name: str, fields: AnswerFields) -> Change | None:
    if name == "eth_feeHistory":
        return _fees_of_besu if fields is AnswerFields.BESU else _fees_of_geth
    if name == "eth_getProof" and fields is AnswerFields.BESU:
        return _with_keys_as_bytes
    if fields is AnswerFields.GOQUORUM and name in _TRANSACTIONS:
        return _transactions_of_goquorum
    if fields is AnswerFields.GOQUORUM and name in _RECEIPTS:
        return _receipts_of_goquorum
    if fields is AnswerFields.BESU and name in _TRANSACTIONS:
        return _without_parity
    return _without_timestamps if name in _TRANSACTIONS | _RECEIPTS | _LOGS else None


def _without_timestamps(answer: bytes) -> bytes:
    return _BLOCK_TIMESTAMP.sub(b"", answer)


def _without_parity(answer: bytes) -> bytes:
    return _PARITY.sub(b"", _without_timestamps(answer))


def _fees_of_besu(answer: bytes) -> bytes:
    content = orjson.loads(answer)
    return orjson.dumps({key: value for key, value in content.items() if key not in _BLOB_FIELDS})


def _fees_of_geth(answer: bytes) -> bytes:
    content = orjson.loads(_fees_of_besu(answer))
    content["gasUsedRatio"] = [int(one) if one == int(one) else one for one in content["gasUsedRatio"]]
    return orjson.dumps(content)


def _with_keys_as_bytes(answer: bytes) -> bytes:
    """Return an `eth_getProof` answer with storage keys as bytes without leading zeros: 0x for 0, 0x01 for 1."""
    content = orjson.loads(answer)
    for proof in content["storageProof"]:
        digits = proof["key"][2:].lstrip("0")
        proof["key"] = "0x" + digits.rjust(len(digits) + len(digits) % 2, "0")
    return orjson.dumps(content)


def _transactions_of_goquorum(answer: bytes) -> bytes:
    content = orjson.loads(_without_parity(answer))
    found = content.get("transactions", [content]) if isinstance(content, dict) else content or []
    for one in found:
        if isinstance(one, dict) and one.get("type") == "0x0":
            one.pop("chainId", None)
    return orjson.dumps(content)


def _receipts_of_goquorum(answer: bytes) -> bytes:
    content = orjson.loads(_without_timestamps(answer))
    for one in [content] if isinstance(content, dict) else content or []:
        one.pop("effectiveGasPrice", None)
        one["isPrivacyMarkerTransaction"] = False
    return orjson.dumps(content)
