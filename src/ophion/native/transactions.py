"""Rust types of decoded transactions and block bodies."""

from ophion._native import (
    Body,
    Bounds,
    Decoder,
    Transaction,
    Withdrawal,
    decode_block,
    decode_transactions,
    journal_lines,
    recover_bodies,
    senders_recovered,
)

__all__ = [
    "Body",
    "Bounds",
    "Decoder",
    "Transaction",
    "Withdrawal",
    "decode_block",
    "decode_transactions",
    "journal_lines",
    "recover_bodies",
    "senders_recovered",
]
