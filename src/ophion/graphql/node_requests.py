"""Parts of a GraphQL request that need more than the database: calls, estimates and transactions to send.

These parts use the code that serves JSON-RPC, so gas caps, timeouts, error codes and pool rules are the same. One
difference: a failed `call` returns a result with status 0, but `eth_call` returns an error (graphql.md 5).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ophion.chain.queries import BlockView
from ophion.errors import MissingStateError, RpcError
from ophion.native.executor import BlockEnv, CallOutcome, State, call
from ophion.native.graphql import GraphqlAsk, GraphqlReply
from ophion.rpc.errors import REVERTED_CODE, as_rpc_error, invalid_params
from ophion.rpc.services.call_execution import failure_of, gas_for, run_estimate
from ophion.rpc.services.call_object import Call
from ophion.rpc.services.context import RpcContext

_MAX_FEE_BITS = 128


async def replies_to(ctx: RpcContext, asks: Sequence[GraphqlAsk]) -> list[GraphqlReply]:
    """Run the calls, estimates and transactions of a GraphQL request and return their replies. If the request sends a
    transaction, everything runs one by one in order, otherwise concurrently.
    """
    if any(ask.kind == "send" for ask in asks):
        return [await _reply(ctx, ask) for ask in asks]
    return list(await asyncio.gather(*(_reply(ctx, ask) for ask in asks)))


async def _reply(ctx: RpcContext, ask: GraphqlAsk) -> GraphqlReply:
    try:
        if ask.kind == "send":
            return await _send(ctx, ask.data)
        return await _call_or_estimate(ctx, ask)
    except Exception as error:
        known = as_rpc_error(error)
        if known is None:
            raise
        return _failed(known)


def _failed(error: RpcError) -> GraphqlReply:
    """Return code, message and revert data (if any) of a JSON-RPC error."""
    data = error.data if error.code == REVERTED_CODE and isinstance(error.data, str) else None
    return GraphqlReply.failed(error.code, error.message, data)


async def _send(ctx: RpcContext, raw: bytes) -> GraphqlReply:
    return GraphqlReply.sent(await ctx.pool.send(raw))


async def _call_or_estimate(ctx: RpcContext, ask: GraphqlAsk) -> GraphqlReply:
    arguments = _call_of(ask)
    try:
        place = _place(ctx, ask.block)
    except MissingStateError:
        return GraphqlReply.nothing()
    if place is None:
        return GraphqlReply.nothing()
    state, env, gas_limit = place
    if ask.kind == "estimate":
        return GraphqlReply.gas(await run_estimate(ctx, state, env, gas_limit, arguments, None))
    request = arguments.request(gas_for(ctx, arguments, gas_limit))
    outcome = await ctx.lanes.read.run(lambda: call(state, env, request, (), ctx.limits.timeout_s))
    return _called(ctx, outcome)


def _called(ctx: RpcContext, outcome: CallOutcome) -> GraphqlReply:
    """Return the result of a call. A call that fails or breaks a transaction rule has status 0; a timeout is an
    error.
    """
    if outcome.kind == "timeout":
        return _failed(failure_of(ctx, outcome, outcome.reason))
    return GraphqlReply.call(outcome.kind == "returned", outcome.gas_used, outcome.output)


def _place(ctx: RpcContext, block: bytes | None) -> tuple[State, BlockEnv, int] | None:
    """Return state, environment and gas limit of a call; None if the block or its state is missing. Without `block`,
    the state is that of the head, and the environment that of the next block.
    """
    queries = ctx.queries
    if block is None:
        following = queries.next_block()
        return queries.head_state, following.env, following.header.gas_limit
    view: BlockView | None = queries.view(block)
    return None if view is None else (view.state, view.env, view.header.gas_limit)


def _call_of(ask: GraphqlAsk) -> Call:
    fees = (ask.gas_price, ask.max_fee_per_gas, ask.max_priority_fee_per_gas)
    if any(fee is not None and fee.bit_length() > _MAX_FEE_BITS for fee in fees):
        raise invalid_params("a fee has more than 128 bits")
    gas_price, max_fee, max_priority_fee = fees
    return Call(
        sender=ask.sender,
        to=ask.to,
        gas=ask.gas,
        value=ask.value or 0,
        input=ask.data,
        gas_price=gas_price,
        max_fee_per_gas=max_fee,
        max_priority_fee_per_gas=max_priority_fee,
    )
