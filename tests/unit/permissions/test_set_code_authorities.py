"""Tests accounts that authorise a set-code transaction."""

from __future__ import annotations

from ophion.native.transactions import Transaction, decode_transactions
from ophion.permissions.set_code_authorities import authorities
from ophion.testing.signing import DEV_CHAIN_ID, DEV_KEYS, fee_transaction, set_code_transaction, signed_authorization

A, B, C = DEV_KEYS
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def of(raw: bytes) -> list[bytes]:
    [transaction] = decode_transactions([raw])
    assert isinstance(transaction, Transaction), transaction
    return authorities(transaction)


def test_each_signer_is_found_once_whatever_chain_and_nonce() -> None:
    signed = [
        signed_authorization(B, DEV_CHAIN_ID, bytes(19) + b"\x07", 3),
        signed_authorization(C, 0, bytes(20), 0),
        signed_authorization(B, 99, bytes(20), 2**63),
    ]
    assert of(set_code_transaction(A, 0, signed)) == [B.address, C.address]


def test_signatures_that_execution_ignores_have_no_authority() -> None:
    chain_id, address, nonce, parity, r, s = signed_authorization(B, 0, bytes(20), 0)
    ignored = [
        (chain_id, address, nonce, parity ^ 1, r, ORDER - s),
        (chain_id, address, nonce, 27 + parity, r, s),
        (chain_id, address, nonce, parity, 0, s),
    ]
    assert of(set_code_transaction(A, 0, ignored)) == []


def test_other_transactions_have_none() -> None:
    assert of(fee_transaction(A, 0)) == []
