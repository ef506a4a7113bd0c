"""Decides whether a transaction may replace a pooled transaction of the same sender and nonce (json-rpc.md 5.5)."""

from __future__ import annotations

from typing import Final

from ophion.chain.gas_price import FeeFloor
from ophion.pool.options import PoolConfig
from ophion.pool.queue import PooledTransaction

_DEFAULT_PRICE_BUMP_PERCENT: Final = 10


def may_replace(old: PooledTransaction, new: PooledTransaction, config: PoolConfig, floor: FeeFloor) -> bool:
    """Whether fee and tip rise by at least the price bump. By default, any increase is enough if the minimum gas price
    is 0. With `--tx-pool-replace-by-fee-only`, the tip may also stay or fall.
    """
    bump_percent = config.price_bump
    if bump_percent is None:
        bump_percent = _DEFAULT_PRICE_BUMP_PERCENT if floor.min_gas_price else 0
    if not _is_raised(old.max_fee, new.max_fee, bump_percent):
        return False
    return config.replaces_by_fee or _is_raised(old.max_tip, new.max_tip, bump_percent)


def _is_raised(old: int, new: int, bump_percent: int) -> bool:
    return new > old and new * 100 >= old * (100 + bump_percent)
