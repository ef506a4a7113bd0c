"""Fast path of admission: a plain transaction, checked in one call into Rust.

The slow path (`Admitter.admit` with `admission.judge`) must admit every transaction that the fast path admits.
`test_fast_path_agrees_with_the_checks` in tests/unit/pool/test_fast_path.py compares both paths.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ophion.native.transactions import Transaction
from ophion.pool.events import Admitted
from ophion.pool.queue import PooledTransaction

if TYPE_CHECKING:
    from ophion.pool.admitter import Admitter


def admit_plain(
    admitter: Admitter, transaction: Transaction, is_local: bool, added_at: float, entered: list[PooledTransaction]
) -> Admitted | None:
    """Admit a plain transaction that replaces no other transaction. Returns None, without a change, if the slow path
    must decide.
    """
    bounds = admitter.context.bounds
    values = None if bounds is None else transaction.plain_admission_values(bounds)
    if values is None:
        return None
    hash, sender, nonce, gas_limit, max_fee, max_tip, size, cost = values
    start, balance, refusal = admitter.accounts.get(sender) or admitter.account(sender)
    if nonce < start or cost > balance or refusal is not None:
        return None
    if is_local and admitter.local_rule is not None and admitter.local_rule.refusal(transaction) is not None:
        return None
    admitter.sequence += 1
    item = PooledTransaction(
        transaction, hash, sender, nonce, gas_limit, max_fee, max_tip, size, is_local, added_at, admitter.sequence
    )
    if not admitter.queue.add(item, start):
        return None
    entered.append(item)
    return Admitted(hash)
