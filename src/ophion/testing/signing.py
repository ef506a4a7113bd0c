"""Signed transactions in one line each, as a wallet would make them."""

from __future__ import annotations

from collections.abc import Sequence

from ophion.chainspec.dev import DEV_CHAIN_ID, ORIGINAL_ACCOUNTS
from ophion.native.crypto import PrivateKey, keccak256
from ophion.primitives import rlp
from ophion.primitives.types import WEI_PER_GWEI, Address, Hash32

DEV_KEYS = tuple(PrivateKey(account.private_key) for account in ORIGINAL_ACCOUNTS)
"""The published keys of the development network's first three accounts."""


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
    """A legacy transaction, with replay protection (EIP-155) unless the chain id is None."""
    fields: list[bytes] = [
        rlp.scalar(nonce),
        rlp.scalar(gas_price),
        rlp.scalar(gas),
        to or b"",
        rlp.scalar(value),
        data,
    ]
    protection = [] if chain_id is None else [rlp.scalar(chain_id), b"", b""]
    signature = key.sign(keccak256(rlp.encode([*fields, *protection])))
    v = signature[64] + (27 if chain_id is None else 35 + 2 * chain_id)
    return rlp.encode([*fields, rlp.scalar(v), *_r_and_s(signature)])


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
    """A transaction with base fee and tip (EIP-1559)."""
    fields: list[rlp.Encodable] = [
        rlp.scalar(chain_id),
        rlp.scalar(nonce),
        rlp.scalar(tip),
        rlp.scalar(max_fee),
        rlp.scalar(gas),
        to or b"",
        rlp.scalar(value),
        data,
        [],
    ]
    return _typed(key, 2, fields)


def blob_transaction(key: PrivateKey, nonce: int, hashes: Sequence[Hash32], *, chain_id: int = DEV_CHAIN_ID) -> bytes:
    """A transaction with blobs (EIP-4844) in the form of blocks, which is without them."""
    fee = rlp.scalar(WEI_PER_GWEI)
    head = [rlp.scalar(chain_id), rlp.scalar(nonce), fee, fee, rlp.scalar(21_000), bytes(20), b"", b""]
    return _typed(key, 3, [*head, [], rlp.scalar(1), list(hashes)])


def set_code_transaction(
    key: PrivateKey, nonce: int, authorizations: Sequence[rlp.Encodable], *, chain_id: int = DEV_CHAIN_ID
) -> bytes:
    """A transaction that sets code (EIP-7702); the authorizations are signed already."""
    fee = rlp.scalar(WEI_PER_GWEI)
    head = [rlp.scalar(chain_id), rlp.scalar(nonce), fee, fee, rlp.scalar(100_000), bytes(20), b"", b""]
    return _typed(key, 4, [*head, [], list(authorizations)])


def _typed(key: PrivateKey, kind: int, fields: list[rlp.Encodable]) -> bytes:
    prefix = bytes([kind])
    signature = key.sign(keccak256(prefix + rlp.encode(fields)))
    return prefix + rlp.encode([*fields, rlp.scalar(signature[64]), *_r_and_s(signature)])


def _r_and_s(signature: bytes) -> tuple[bytes, bytes]:
    return signature[:32].lstrip(b"\0"), signature[32:64].lstrip(b"\0")
