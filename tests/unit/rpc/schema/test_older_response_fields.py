"""Answers in the form of older clients lack newer fields and keep all others."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from ophion.rpc.schema.answer_fields import AnswerFields
from ophion.rpc.schema.method_table import BoundMethod, MethodTable
from ophion.rpc.schema.older_response_fields import older_answers

LOG = {"address": "0x01", "blockTimestamp": "0x5", "data": '","blockTimestamp":"0x5"'}
LEGACY = {"hash": "0x1", "blockTimestamp": "0x5", "chainId": "0x7", "type": "0x0"}
DYNAMIC = {"hash": "0x2", "blockTimestamp": None, "chainId": "0x7", "type": "0x2"}
RECEIPT = {"blockHash": "0x1", "effectiveGasPrice": "0x1", "logs": [LOG]}


def answer(name: str, value: Any, fields: AnswerFields) -> Any:
    bound = BoundMethod(lambda params, caller: value, orjson.dumps, False, name)
    return orjson.loads(older_answers(MethodTable.of({name: bound}), fields)[name].encode(value))


def without(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: one for key, one in value.items() if key not in keys}


@pytest.mark.parametrize("fields", [AnswerFields.BESU, AnswerFields.GETH, AnswerFields.GOQUORUM])
def test_timestamps_are_omitted_outside_of_texts(fields: AnswerFields) -> None:
    assert answer("eth_getLogs", [LOG], fields) == [without(LOG, "blockTimestamp")]
    assert answer("eth_getTransactionByHash", DYNAMIC, fields) == without(DYNAMIC, "blockTimestamp")
    assert answer("eth_getTransactionByHash", None, fields) is None
    block = {"number": "0x1", "timestamp": "0x5", "transactions": ["0x1"]}
    assert answer("eth_getBlockByNumber", block, fields) == block
    history = {"oldestBlock": "0x1", "gasUsedRatio": [0.5], "blobGasUsedRatio": [0.0], "baseFeePerBlobGas": ["0x0"]}
    assert answer("eth_feeHistory", history, fields) == {"oldestBlock": "0x1", "gasUsedRatio": [0.5]}


def test_current_answers_are_unchanged() -> None:
    assert answer("eth_getLogs", [LOG], AnswerFields.CURRENT) == [LOG]
    assert answer("eth_chainId", "0x7", AnswerFields.BESU) == "0x7"


def test_besu_writes_storage_keys_as_bytes() -> None:
    keys = ["0x0", "0x1", "0x10", "0xabc"]
    proof = {"address": "0x01", "storageProof": [{"key": key, "value": "0x0", "proof": []} for key in keys]}
    found = answer("eth_getProof", proof, AnswerFields.BESU)["storageProof"]
    assert [one["key"] for one in found] == ["0x", "0x01", "0x10", "0x0abc"]
    assert answer("eth_getProof", proof, AnswerFields.GETH) == proof


def test_geth_writes_whole_ratios_without_a_point() -> None:
    bound = BoundMethod(lambda params, caller: None, orjson.dumps, False, "eth_feeHistory")
    table = older_answers(MethodTable.of({"eth_feeHistory": bound}), AnswerFields.GETH)
    assert table["eth_feeHistory"].encode({"gasUsedRatio": [0.0, 0.5, 1.0]}) == b'{"gasUsedRatio":[0,0.5,1]}'


def test_besu_has_no_parity() -> None:
    value = DYNAMIC | {"yParity": "0x1"}
    assert answer("eth_getTransactionByHash", value, AnswerFields.BESU) == without(DYNAMIC, "blockTimestamp")
    assert "yParity" in answer("eth_getTransactionByHash", value, AnswerFields.GETH)


def test_goquorum_has_the_fields_of_geth_1_10() -> None:
    fields = AnswerFields.GOQUORUM
    receipt = answer("eth_getTransactionReceipt", RECEIPT, fields)
    expected = without(RECEIPT, "effectiveGasPrice") | {"isPrivacyMarkerTransaction": False}
    assert receipt == expected | {"logs": [without(LOG, "blockTimestamp")]}
    assert answer("eth_getBlockReceipts", [RECEIPT], fields) == [receipt]
    assert answer("eth_getTransactionReceipt", None, fields) is None
    assert answer("eth_getTransactionByHash", LEGACY, fields) == {"hash": "0x1", "type": "0x0"}
    block = {"number": "0x1", "transactions": [LEGACY, DYNAMIC]}
    found = answer("eth_getBlockByHash", block, fields)["transactions"]
    assert found == [{"hash": "0x1", "type": "0x0"}, without(DYNAMIC, "blockTimestamp")]
    assert answer("eth_pendingTransactions", [LEGACY], fields) == [{"hash": "0x1", "type": "0x0"}]
