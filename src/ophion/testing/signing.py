"""Signed transactions for tests."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from ophion.chainspec.dev_network import DEV_CHAIN_ID, ORIGINAL_ACCOUNTS
from ophion.native.crypto import PrivateKey, keccak256
from ophion.primitives import rlp
from ophion.primitives.types import WEI_PER_GWEI, Address, Hash32
from ophion.wallet.unsigned_transaction import BLOB, DYNAMIC_FEE, LEGACY, SET_CODE, Authorization, UnsignedTransaction

DEV_KEYS = tuple(PrivateKey(account.private_key) for account in ORIGINAL_ACCOUNTS)
"""Public test keys of the first three accounts of the development network."""


def legacy_transaction(
    key: PrivateKey,
    nonce: int,
    *,
    to: Address | None = bytes(20),
    value: int = 0,
    gas: int = 21_000,
    gas_price: int = WEI_PER_GWEI,
    data: bytes = b"",
    chain_id: int | None = DEV_CHAIN_ID,
) -> bytes:
    """Sign a legacy transaction, with replay protection (EIP-155) if there is a chain id."""
    return UnsignedTransaction(
        type=LEGACY, chain_id=chain_id, nonce=nonce, gas=gas, to=to, value=value, input=data, gas_price=gas_price
    ).signed_by(key)


def fee_transaction(
    key: PrivateKey,
    nonce: int,
    *,
    to: Address | None = bytes(20),
    value: int = 0,
    gas: int = 21_000,
    max_fee: int = WEI_PER_GWEI,
    tip: int = WEI_PER_GWEI,
    data: bytes = b"",
    chain_id: int = DEV_CHAIN_ID,
) -> bytes:
    """Sign a fee market transaction (EIP-1559)."""
    return UnsignedTransaction(
        type=DYNAMIC_FEE,
        chain_id=chain_id,
        nonce=nonce,
        gas=gas,
        to=to,
        value=value,
        input=data,
        max_fee_per_gas=max_fee,
        max_priority_fee_per_gas=tip,
    ).signed_by(key)


def blob_transaction(key: PrivateKey, nonce: int, hashes: Sequence[Hash32], *, chain_id: int = DEV_CHAIN_ID) -> bytes:
    """Sign a blob transaction (EIP-4844) in its block form, without blobs."""
    return UnsignedTransaction(
        type=BLOB,
        chain_id=chain_id,
        nonce=nonce,
        gas=21_000,
        to=bytes(20),
        max_fee_per_gas=WEI_PER_GWEI,
        max_priority_fee_per_gas=WEI_PER_GWEI,
        max_fee_per_blob_gas=1,
        blob_hashes=hashes,
    ).signed_by(key)


def with_empty_blobs(key: PrivateKey, nonce: int, count: int = 1, *, chain_id: int = DEV_CHAIN_ID) -> bytes:
    """Sign a blob transaction with all-zero blobs, in network form. Commitment and proof are the point at infinity."""
    infinity = b"\xc0" + bytes(47)
    hash = b"\x01" + sha256(infinity).digest()[1:]
    inner = blob_transaction(key, nonce, [hash] * count, chain_id=chain_id)
    blobs = rlp.list_of([rlp.encode_bytes(bytes(131_072))] * count)
    points = rlp.list_of([rlp.encode_bytes(infinity)] * count)
    return inner[:1] + rlp.list_of([inner[1:], blobs, points, points])


def set_code_transaction(
    key: PrivateKey, nonce: int, authorizations: Sequence[Authorization], *, chain_id: int = DEV_CHAIN_ID
) -> bytes:
    """Sign a set-code transaction (EIP-7702) with signed authorizations."""
    return UnsignedTransaction(
        type=SET_CODE,
        chain_id=chain_id,
        nonce=nonce,
        gas=100_000,
        to=bytes(20),
        max_fee_per_gas=WEI_PER_GWEI,
        max_priority_fee_per_gas=WEI_PER_GWEI,
        authorizations=authorizations,
    ).signed_by(key)


def signed_authorization(key: PrivateKey, chain_id: int, address: Address, nonce: int) -> Authorization:
    """Sign an authorization (EIP-7702): the key's account gets the code of `address`."""
    payload = rlp.encode([rlp.scalar(chain_id), address, rlp.scalar(nonce)])
    signature = key.sign(keccak256(b"\x05" + payload))
    r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:64]))
    return chain_id, address, nonce, signature[64], r, s
