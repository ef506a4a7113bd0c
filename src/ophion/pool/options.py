"""Options of the transaction pool."""

from __future__ import annotations

from typing import Final

from ophion.runtime.options import Options, at_least, between, option

MAX_BYTES: Final = 64 * 1024 * 1024
"""Limit of the bytes of all pooled transactions, measured as in a block. Each byte takes about two bytes of memory."""


class PoolConfig(Options):
    """Transaction pool: limits, prices and the journal of local transactions."""

    max_size: int = option("--tx-pool-max-size", default=4096, check=at_least(1), help="Transactions kept in the pool.")
    max_bytes: int = option(
        "--tx-pool-max-held-size",
        default=MAX_BYTES,
        check=at_least(1),
        help="Maximum bytes of all transactions in the pool; above it, the sender with most bytes loses transactions.",
    )
    retention_hours: int = option(
        "--tx-pool-retention-hours", default=13, check=at_least(0), help="Hours until a transaction expires."
    )
    price_bump: int | None = option(
        "--tx-pool-price-bump",
        default=None,
        check=between(0, 1000),
        help="Percent by which a replacement must raise the price. (default: 10, or any if the minimum gas price is 0)",
    )
    replaces_by_fee: bool = option(
        "--tx-pool-replace-by-fee-only",
        default=False,
        help="A replacement may keep the priority fee if its maximum fee per gas is higher, as in Anvil.",
    )
    save: bool = option(
        "--tx-pool-enable-save-restore",
        default=True,
        help="Store local pending transactions in the data path, so that they survive a restart.",
    )
    fee_cap: int = option(
        "--rpc-tx-feecap",
        default=0,
        check=at_least(0),
        help="Maximum fee in wei of a transaction that a client sends to this node; 0 for no cap.",
    )
    needs_chain_id: bool = option(
        "--strict-tx-replay-protection-enabled",
        default=False,
        help="Accept only transactions with the chain id (EIP-155) from clients.",
    )
