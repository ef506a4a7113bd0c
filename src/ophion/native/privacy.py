"""Rust functions for private transactions: encoding, signing of marker transactions, execution and receipts."""

from ophion._native import (
    PrivateBatch,
    PrivateLedger,
    PrivateReceiptRecord,
    PrivateTransaction,
    decode_private_transaction,
    decode_private_transactions,
    decode_versioned,
    encode_versioned,
    private_contract_address,
    private_gas_limit,
    sign_markers,
    sign_private_transaction,
)

__all__ = [
    "PrivateBatch",
    "PrivateLedger",
    "PrivateReceiptRecord",
    "PrivateTransaction",
    "decode_private_transaction",
    "decode_private_transactions",
    "decode_versioned",
    "encode_versioned",
    "private_contract_address",
    "private_gas_limit",
    "sign_markers",
    "sign_private_transaction",
]
