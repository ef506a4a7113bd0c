"""eth_*: sends transactions, executes calls, estimates gas (json-rpc.md 5.5, 7.1)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, Any

from msgspec.structs import replace

from ophion.chain.queries import BlockView
from ophion.errors import MissingStateError
from ophion.primitives.types import BlockTag
from ophion.rpc.errors import BLOCK_NOT_FOUND, invalid_params
from ophion.rpc.schema.registry import Example, method
from ophion.rpc.schema.schemas import PENDING_LIST, AccessListResult, ReceiptJson
from ophion.rpc.schema.wire_types import BlockId, BlockParam, Data, DataParam, HashResult, IntegerParam, Quantity
from ophion.rpc.services.block_reference import view_at
from ophion.rpc.services.call_execution import INLINE_S, list_access, run_call, run_estimate
from ophion.rpc.services.call_object import (
    BlockOverridesParam,
    Call,
    CallObjectParam,
    CallParam,
    StateOverridesParam,
    decode_call,
)
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.pool_listing import listed
from ophion.rpc.services.receipts import receipt_of
from ophion.rpc.transport.streaming import StreamedResult
from ophion.runtime.eager_coroutine import awaited


@method("eth_sendRawTransaction", needs={"pool"}, exact_count=True, sends_raw_transaction=True)
def send_raw_transaction(ctx: RpcContext, transaction: DataParam) -> Awaitable[HashResult]:
    """Validates a signed transaction, adds it to the pool and returns its hash.

    Transactions that arrive together are decoded, and their senders recovered, as one batch on all cores.
    """
    return ctx.pool.send(transaction)


@method("eth_sendRawTransactionSync", needs={"pool", "chain"})
async def send_raw_transaction_sync(
    ctx: RpcContext, transaction: DataParam, timeout_ms: IntegerParam | None = None
) -> ReceiptJson:
    """Same as `eth_sendRawTransaction`, but waits for the receipt (EIP-7966).

    Waits two seconds or the given milliseconds, at most the request timeout. Error 4 is a timeout, with the hash in
    `data`. Error 6 is a nonce gap, with the missing nonce in `data`.
    """
    return await receipt_of(ctx, await ctx.pool.send(transaction), timeout_ms)


@method("eth_pendingTransactions", needs={"pool"}, examples=[Example([], [])])
@method("parity_pendingTransactions", needs={"pool"}, examples=[Example([], [])])
async def pending_transactions(ctx: RpcContext) -> Annotated[bytes | StreamedResult, PENDING_LIST]:
    """Returns all pooled transactions in the order of arrival."""
    return await listed(ctx, ctx.pool.transactions())


@method(
    "eth_call",
    needs={"state"},
    latest_read="call",
    examples=[
        Example(
            [{"to": "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f", "data": "0x12a7b914"}, "latest"],
            "0x0000000000000000000000000000000000000000000000000000000000000001",
        )
    ],
)
def eth_call(
    ctx: RpcContext,
    call: CallObjectParam,
    block: BlockParam = BlockTag.LATEST,
    state_overrides: StateOverridesParam = None,
    block_overrides: BlockOverridesParam = None,
) -> Data | Awaitable[Data | None] | None:
    """Executes a call on the state after a block and returns its output, without changing the state.

    Without `to`, creates a contract and returns its code. A revert is error 3 with the revert data. Overrides replace
    parts of accounts and of the block for this call. Without a gas price, the base fee is 0 (with `--preset=anvil`, the
    base fee of the block). Null if the block does not exist.
    """
    queries = ctx.queries
    if block is BlockTag.LATEST and block_overrides is None:
        state, gas_limit = queries.head_state, queries.head.header.gas_limit
        if state_overrides is None:
            newest = queries.newest
            if not newest.has_call_settings:
                cap, tried = ctx.limits.gas_cap or gas_limit, ctx.light_calls.tried
                newest.set_call_settings(queries.latest.free_env, gas_limit, cap, INLINE_S, tried)
            # the fast path returns None for a call that it cannot run, for example with a gas price or a chain id; the
            # slow path below runs such calls
            output = newest.call(call)
            if output is not None:
                return output
        names_price = call.get("gasPrice") or call.get("maxFeePerGas") or call.get("maxPriorityFeePerGas")
        env = queries.head_env if names_price else queries.latest.free_env
        return run_call(ctx, state, env, gas_limit, decode_call(call), state_overrides)
    decoded = decode_call(call)
    if block is BlockTag.PENDING:
        return _call_pending(ctx, decoded, state_overrides, block_overrides)
    view = view_at(ctx, block)
    return None if view is None else _call_at(ctx, view, decoded, state_overrides, block_overrides)


def _call_at(
    ctx: RpcContext,
    view: BlockView,
    call: Call,
    state_overrides: StateOverridesParam,
    block_overrides: BlockOverridesParam,
) -> bytes | Awaitable[bytes | None] | None:
    try:
        state = view.state
    except MissingStateError:
        return None
    is_free = call.gas_price is None and call.max_fee_per_gas is None and call.max_priority_fee_per_gas is None
    env, gas_limit = view.free_env if is_free else view.env, view.header.gas_limit
    if block_overrides is not None:
        is_zeroed = is_free and not ctx.queries.chain.has_base_fee_in_free_calls
        if is_zeroed and block_overrides.base_fee is None and view.header.base_fee_per_gas is not None:
            block_overrides = replace(block_overrides, base_fee=0)
        env = view.env_with(block_overrides)
        gas_limit = block_overrides.gas_limit or gas_limit
    return run_call(ctx, state, env, gas_limit, call, state_overrides)


async def _call_pending(ctx: RpcContext, call: Call, state_overrides: Any, block_overrides: Any) -> bytes | None:
    return await awaited(_call_at(ctx, await ctx.queries.pending(), call, state_overrides, block_overrides))


@method(
    "eth_estimateGas",
    needs={"state"},
    examples=[
        Example(
            [
                {
                    "from": "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f",
                    "to": "0x8888f1f195afa192cfee860698584c030f4c9db1",
                    "value": "0x1",
                }
            ],
            "0x5208",
        )
    ],
)
def eth_estimate_gas(
    ctx: RpcContext,
    call: CallParam,
    block: BlockParam = BlockTag.PENDING,
    state_overrides: StateOverridesParam = None,
) -> Quantity | Awaitable[Quantity]:
    """Estimates the gas with which a transaction succeeds in the next block, by bisection to 1.5 percent.

    A given gas limit is the upper bound, unless it is below the minimum of any transaction. The cap of EIP-7825 is an
    upper bound too. If the transaction would fail, returns the error of the transaction. A development node with a
    preset returns the minimum gas that suffices.
    """
    if block is BlockTag.PENDING:
        queries = ctx.queries
        following = queries.next_block()
        return run_estimate(ctx, queries.head_state, following.env, following.header.gas_limit, call, state_overrides)
    view = _known_view(ctx, block)
    return run_estimate(ctx, view.state, view.env, view.header.gas_limit, call, state_overrides)


@method(
    "eth_createAccessList",
    needs={"state"},
    examples=[
        Example(
            [{"to": "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f", "data": "0x12a7b914"}, "latest"],
            {
                "accessList": [
                    {
                        "address": "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f",
                        "storageKeys": ["0x0000000000000000000000000000000000000000000000000000000000000000"],
                    }
                ],
                "gasUsed": "0x53f0",
            },
        )
    ],
)
async def eth_create_access_list(
    ctx: RpcContext,
    call: CallParam,
    block: BlockParam = BlockTag.LATEST,
    state_overrides: StateOverridesParam = None,
) -> AccessListResult:
    """Returns the accounts and slots that a call accesses (its access list), and the gas that it uses with this list.

    For a call that reverts or halts, the result has the access list and the reason in `error`.
    """
    view = await ctx.queries.pending() if block is BlockTag.PENDING else _known_view(ctx, block)
    return await list_access(ctx, view, call, state_overrides)


def _known_view(ctx: RpcContext, block: BlockId) -> BlockView:
    if isinstance(block, int) and block < 0:
        raise invalid_params("block: negative")
    view = view_at(ctx, block)
    if view is None:
        raise BLOCK_NOT_FOUND()
    return view
