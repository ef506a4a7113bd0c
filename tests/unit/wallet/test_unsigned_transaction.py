"""Tests signed transactions of every type against the results of a wallet."""

from __future__ import annotations

from typing import Any

import pytest
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ophion.native.crypto import PrivateKey
from ophion.native.transactions import decode_transactions
from ophion.testing.signing import signed_authorization
from ophion.wallet.unsigned_transaction import (
    ACCESS_LIST,
    BLOB,
    DYNAMIC_FEE,
    LEGACY,
    SET_CODE,
    UnsignedTransaction,
)

KEY = PrivateKey(b"\x46" * 32)
SLOT = bytes(31) + b"\x05"
FULL = UnsignedTransaction(
    type=LEGACY,
    chain_id=2018,
    nonce=9,
    gas=100_000,
    to=b"\x35" * 20,
    value=10**18,
    input=b"\x01\x02",
    gas_price=20 * 10**9,
    max_fee_per_gas=30 * 10**9,
    max_priority_fee_per_gas=10**9,
    access_list=[(b"\x77" * 20, [SLOT])],
    max_fee_per_blob_gas=5,
    blob_hashes=[b"\x01" * 32],
    authorizations=[signed_authorization(PrivateKey(b"\x47" * 32), 2018, b"\x88" * 20, 3)],
)


def as_wallets_write_it(transaction: UnsignedTransaction) -> dict[str, Any]:
    members: dict[str, Any] = {
        "nonce": transaction.nonce,
        "gas": transaction.gas,
        **({} if transaction.to is None else {"to": "0x" + transaction.to.hex()}),
        "value": transaction.value,
        "data": "0x" + transaction.input.hex(),
    }
    if transaction.chain_id is not None:
        members["chainId"] = transaction.chain_id
    if transaction.type < DYNAMIC_FEE:
        members["gasPrice"] = transaction.gas_price
    else:
        members["maxFeePerGas"] = transaction.max_fee_per_gas
        members["maxPriorityFeePerGas"] = transaction.max_priority_fee_per_gas
    if transaction.type != LEGACY:
        members["type"] = transaction.type
        members["accessList"] = [
            {"address": "0x" + address.hex(), "storageKeys": ["0x" + slot.hex() for slot in slots]}
            for address, slots in transaction.access_list
        ]
    return members


@pytest.mark.parametrize("kind", [LEGACY, ACCESS_LIST, DYNAMIC_FEE])
@pytest.mark.parametrize("to", [b"\x35" * 20, None])
def test_a_signed_transaction_is_that_of_a_wallet(kind: int, to: bytes | None) -> None:
    transaction = replace(FULL, type=kind, to=to)
    expected = Account.sign_transaction(as_wallets_write_it(transaction), b"\x46" * 32)
    assert transaction.signed_by(KEY) == bytes(expected.raw_transaction)


def test_a_legacy_transaction_may_name_no_chain() -> None:
    transaction = replace(FULL, chain_id=None)
    expected = Account.sign_transaction(as_wallets_write_it(transaction), b"\x46" * 32)
    assert transaction.signed_by(KEY) == bytes(expected.raw_transaction)


@pytest.mark.parametrize("kind", [LEGACY, ACCESS_LIST, DYNAMIC_FEE, BLOB, SET_CODE])
def test_what_is_signed_is_read_back_with_its_sender(kind: int) -> None:
    transaction = replace(FULL, type=kind)
    [read] = decode_transactions([transaction.signed_by(KEY)])
    assert not isinstance(read, str), read
    assert (read.sender, read.type, read.chain_id, read.nonce) == (KEY.address, kind, 2018, 9)
    assert (read.gas_limit, read.to, read.value, read.input) == (100_000, b"\x35" * 20, 10**18, b"\x01\x02")
    assert read.max_fee_per_gas == (20 if kind < DYNAMIC_FEE else 30) * 10**9
    assert read.blob_hashes == ([b"\x01" * 32] if kind == BLOB else [])
    assert read.authorization_count == (1 if kind == SET_CODE else 0)


def test_an_authorization_is_that_of_a_wallet() -> None:
    expected = Account.sign_authorization({"chainId": 2018, "address": "0x" + "88" * 20, "nonce": 3}, b"\x47" * 32)
    signed = signed_authorization(PrivateKey(b"\x47" * 32), 2018, b"\x88" * 20, 3)
    assert signed[3:] == (expected.y_parity, expected.r, expected.s)


@given(
    kind=st.integers(0, 4),
    nonce=st.integers(0, 2**64 - 2),
    gas=st.integers(0, 2**63),
    value=st.integers(0, 2**256 - 1),
    data=st.binary(max_size=64),
)
def test_any_fields_survive(kind: int, nonce: int, gas: int, value: int, data: bytes) -> None:
    transaction = replace(FULL, type=kind, nonce=nonce, gas=gas, value=value, input=data)
    [read] = decode_transactions([transaction.signed_by(KEY)])
    assert not isinstance(read, str), read
    assert (read.nonce, read.gas_limit, read.value, read.input) == (nonce, gas, value, data)
    assert len(transaction.unsigned) < len(transaction.signed_by(KEY))
