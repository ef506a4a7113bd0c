"""Tests headers and signed transactions in JSON."""

from __future__ import annotations

import pytest

from ophion.dev.block_json import decode_header, decode_transaction
from ophion.native.crypto import PrivateKey
from ophion.primitives.hexcodec import data
from ophion.wallet.unsigned_transaction import BLOB, DYNAMIC_FEE, LEGACY, UnsignedTransaction

KEY = PrivateKey(b"\x01" * 32)
OTHER = b"\xd0" * 20
SLOT = b"\x05" * 32


@pytest.mark.parametrize("chain_id", [None, 7, 31337])
@pytest.mark.parametrize("kind", range(5))
def test_a_signed_transaction_is_read_as_it_was_written(kind: int, chain_id: int | None) -> None:
    if kind != LEGACY and chain_id is None:
        return
    unsigned = UnsignedTransaction(
        type=kind,
        chain_id=chain_id,
        nonce=3,
        gas=50_000,
        to=OTHER if kind >= BLOB else None,
        value=9,
        input=b"\x01\x02",
        gas_price=5,
        max_fee_per_gas=8,
        max_priority_fee_per_gas=2,
        access_list=[(OTHER, [SLOT])],
        max_fee_per_blob_gas=4,
        blob_hashes=[SLOT],
        authorizations=[(7, OTHER, 1, 0, 2, 3)],
    )
    signature = KEY.sign(unsigned.signing_hash)
    parity = signature[64]
    v = parity + (27 if chain_id is None else 35 + 2 * chain_id)
    fields = {
        "type": hex(kind),
        "chainId": None if chain_id is None else hex(chain_id),
        "nonce": "0x3",
        "gas": "0xc350",
        "to": data(OTHER) if kind >= BLOB else None,
        "value": "0x9",
        "input": "0x0102",
        "gasPrice": "0x5",
        "maxFeePerGas": "0x8",
        "maxPriorityFeePerGas": "0x2",
        "accessList": [{"address": data(OTHER), "storageKeys": [data(SLOT)]}],
        "maxFeePerBlobGas": "0x4",
        "blobVersionedHashes": [data(SLOT)],
        "authorizationList": [
            {"chainId": "0x7", "address": data(OTHER), "nonce": "0x1", "yParity": "0x0", "r": "0x2", "s": "0x3"}
        ],
        "r": data(signature[:32]),
        "s": data(signature[32:64]),
        "v": hex(v) if kind == LEGACY else hex(parity),
    }
    assert decode_transaction(fields) == unsigned.with_signature(signature)


def test_a_transaction_of_an_impersonated_account_names_its_sender() -> None:
    unsigned = UnsignedTransaction(type=DYNAMIC_FEE, chain_id=7, nonce=0, gas=21_000, to=OTHER)
    fields = {
        "type": "0x2",
        "chainId": "0x7",
        "nonce": 0,
        "gas": 21_000,
        "to": data(OTHER),
        "r": "0x0",
        "s": "0x0",
        "v": 0,
    }
    expected = unsigned.with_signature(OTHER.rjust(32, b"\0") + (1).to_bytes(32, "big") + b"\0")
    assert decode_transaction(fields, OTHER) == expected


@pytest.mark.parametrize(
    "changed",
    [
        {"number": "x"},
        {"number": "0x1" + "0" * 16},
        {"miner": 5},
        {"logsBloom": "0xzz"},
        {"gasUsed": None},
        {"parentHash": "0x00"},
        {"nonce": "0x01"},
        {"requestsHash": "0x"},
    ],
)
def test_wrong_fields_are_refused(changed: dict[str, object]) -> None:
    hashes = dict.fromkeys(("parentHash", "sha3Uncles", "stateRoot", "transactionsRoot", "receiptsRoot"), data(SLOT))
    numbers = dict.fromkeys(("number", "gasLimit", "gasUsed", "timestamp"), "0x1")
    header: dict[str, object] = {**hashes, **numbers, "miner": data(OTHER), "logsBloom": "0x" + "00" * 256}
    header["extraData"] = "0x"
    assert decode_header(header).number == 1
    with pytest.raises((KeyError, TypeError, ValueError)):
        decode_header(header | changed)
