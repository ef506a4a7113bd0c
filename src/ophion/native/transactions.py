"""Transactions and block bodies, decoded in Rust."""

from ophion._native import (
    Body,
    Decoder,
    Transaction,
    Withdrawal,
    decode_block,
    decode_transactions,
    senders_recovered,
)

__all__ = [
    "Body",
    "Decoder",
    "Transaction",
    "Withdrawal",
    "decode_block",
    "decode_transactions",
    "senders_recovered",
]
