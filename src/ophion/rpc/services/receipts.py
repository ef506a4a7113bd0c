"""Receipts of mined transactions, and of transactions that have just been sent (EIP-7966)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from ophion.errors import RpcError
from ophion.native.exceptions import StorageError, as_ophion_error
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import Hash32
from ophion.rpc.errors import is_limit
from ophion.rpc.services.context import RpcContext
from ophion.runtime.eager_coroutine import awaited

TIMEOUT_CODE: Final = 4
NONCE_GAP_CODE: Final = 6

_DEFAULT_TIMEOUT_S: Final = 2.0
_ANVIL_TIMEOUT_S: Final = 30.0
_ANVIL_TIMEOUT_CODE: Final = -32603
_MAX_WAIT_FRACTION: Final = 0.9
"""Fraction of the request timeout after which waiting ends, so that the response is sent before the request times out.
"""
_SHORT_BYTES: Final = 64 * 1024
"""Receipts of at most this size in the database are rendered on the event loop, in one or two milliseconds."""


def mined_receipt(ctx: RpcContext, hash: Hash32) -> bytes | Awaitable[bytes | None] | None:
    """Return the receipt of a transaction; None if the transaction is not mined. Long receipts are rendered in a worker
    thread.
    """
    queries, with_reason = ctx.queries, ctx.limits.shows_revert_reason
    try:
        return queries.receipt_json(hash, with_reason, _SHORT_BYTES)
    except StorageError as error:
        if not is_limit(as_ophion_error(error)):
            raise
    return ctx.lanes.read.run(lambda: queries.receipt_json(hash, with_reason))


async def receipt_of(ctx: RpcContext, hash: Hash32, timeout_ms: int | None) -> bytes:
    """Wait until a transaction is mined and return its receipt. Raises EIP-7966 error 4 (timeout) or 6 (nonce gap).

    With the preset `anvil`, a transaction after a nonce gap waits too, and a timeout is Anvil's error.
    """
    receipt = await awaited(mined_receipt(ctx, hash))
    if receipt is not None:
        return receipt
    item = ctx.pool.get(hash)
    if item is not None and not ctx.is_anvil:
        expected = ctx.pool.next_nonce(item.sender)
        if expected is None or item.nonce >= expected:
            missing = ctx.queries.head_state.nonce(item.sender) if expected is None else expected
            raise RpcError(
                NONCE_GAP_CODE,
                f"The transaction {data(hash)} waits in the pool for an earlier one with nonce {missing}.",
                quantity(missing),
            )
    default_s = _ANVIL_TIMEOUT_S if ctx.is_anvil else _DEFAULT_TIMEOUT_S
    timeout_s = min(default_s if not timeout_ms or timeout_ms < 0 else timeout_ms / 1000, _max_wait_s(ctx))
    await ctx.receipt_waits.wait(hash, timeout_s)
    receipt = await awaited(mined_receipt(ctx, hash))
    if receipt is None and ctx.is_anvil:
        raise RpcError(_ANVIL_TIMEOUT_CODE, "Transaction confirmation timeout", data(hash))
    if receipt is None:
        raise RpcError(
            TIMEOUT_CODE,
            f"The transaction was added to the transaction pool but was not in a block after {timeout_s:g} s.",
            data(hash),
        )
    return receipt


def _max_wait_s(ctx: RpcContext) -> float:
    return ctx.limits.timeout_s * _MAX_WAIT_FRACTION
