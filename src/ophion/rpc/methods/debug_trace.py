"""debug_trace*: replays transactions and calls and traces them (json-rpc.md 5.9, 7.1, 7.3)."""

from __future__ import annotations

from ophion.chain.block import decode_block
from ophion.errors import DecodeError
from ophion.native.tracing import TraceKind, TraceStream, trace_block, trace_call, trace_transaction
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import BlockTag
from ophion.rpc.errors import BLOCK_NOT_FOUND, GENESIS_NOT_TRACEABLE, PARENT_NOT_FOUND, invalid_params
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import BlockNumberParam, BlockParam, DataParam, HashParam
from ophion.rpc.services.block_reference import header_at, view_at
from ophion.rpc.services.call_execution import gas_for
from ophion.rpc.services.call_object import CallParam, decode_block_overrides, decode_state_overrides
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.tracing import (
    PLAIN,
    TraceOptions,
    TraceOptionsParam,
    TraceResult,
    recent_key,
    recent_transaction_key,
    traced,
    traced_block,
    transaction_at,
)


@method("debug_traceTransaction", needs={"state"})
async def trace_one(ctx: RpcContext, hash: HashParam, options: TraceOptionsParam | None = None) -> TraceResult | None:
    """Replays a mined transaction, after the earlier transactions of its block, and returns its trace.

    Without a `tracer` the trace has an entry for each instruction. Null if the transaction is not mined.
    """

    def start(kind: TraceKind) -> TraceStream:
        block, index = transaction_at(ctx, hash)
        return trace_transaction(block, index, kind, ctx.limits.timeout_s)

    options = options or PLAIN
    return await traced(ctx, options, start, key=recent_transaction_key(ctx, hash, options.cache_kind))


@method("debug_traceBlockByNumber", needs={"state"})
async def trace_by_number(
    ctx: RpcContext, block: BlockNumberParam, options: TraceOptionsParam | None = None
) -> TraceResult | None:
    """Traces all transactions of a block; null if the block is unknown.

    For genesis, returns null, or an error if a tracer is named.
    """
    return await _trace_block(ctx, header_at(ctx, block), options)


@method("debug_traceBlockByHash", needs={"state"})
async def trace_by_hash(
    ctx: RpcContext, hash: HashParam, options: TraceOptionsParam | None = None
) -> TraceResult | None:
    """Traces all transactions of a block; null if the block is unknown.

    For genesis, returns null, or an error if a tracer is named.
    """
    return await _trace_block(ctx, ctx.queries.header(hash), options)


@method("debug_traceBlock", needs={"state"})
async def trace_raw_block(
    ctx: RpcContext, block: DataParam, options: TraceOptionsParam | None = None
) -> TraceResult | None:
    """Traces all transactions of a block given as RLP. The node must know the parent of the block."""
    try:
        decoded = decode_block(block, ctx.queries.engine)
    except DecodeError as error:
        raise invalid_params(f"block: {error}") from error
    if ctx.queries.chain.header(decoded.header.parent_hash) is None:
        raise PARENT_NOT_FOUND()
    return await _trace_block(ctx, decoded.header, options, decoded.body)


@method("debug_traceBadBlock", needs={"state", "bad_blocks"})
async def trace_bad_block(
    ctx: RpcContext, hash: HashParam, options: TraceOptionsParam | None = None
) -> TraceResult | None:
    """Traces the transactions of an invalid block, as far as they can be executed."""
    assert ctx.bad_blocks is not None
    bad = ctx.bad_blocks.get(hash)
    if bad is None:
        raise BLOCK_NOT_FOUND()
    return await _trace_block(ctx, bad.header, options, bad.body)


async def _trace_block(
    ctx: RpcContext, header: HashedHeader | None, trace_options: TraceOptions | None, body: Body | None = None
) -> TraceResult | None:
    options = trace_options or PLAIN
    if header is not None and header.number == 0 and ctx.dev is not None:
        return b"[]"  # return an empty list, because indexers that start at genesis retry forever after an error
    # a named tracer refuses genesis, as in current clients. Without a tracer name the result is null, as in Pantheon
    # 1.2.
    if options.is_named and header is not None and header.number == 0:
        raise GENESIS_NOT_TRACEABLE()

    def start(kind: TraceKind) -> TraceStream:
        return trace_block(traced_block(ctx, header, body), kind, options.is_named, ctx.limits.timeout_s)

    # do not cache this trace, because the client sent the body, and the body may belong to another block
    key = None if body is not None else recent_key(ctx, header, options.cache_kind)
    return await traced(ctx, options, start, is_list=True, key=key)


@method("debug_traceCall", needs={"state"})
async def trace_a_call(
    ctx: RpcContext, call: CallParam, block: BlockParam = BlockTag.LATEST, options: TraceOptionsParam | None = None
) -> TraceResult | None:
    """Traces a call on the state after a block. The options may have `stateOverrides` and `blockOverrides`.

    The caller's balance and the base fee are not checked, unless the call sets `strict`.
    """
    trace_options = options or PLAIN
    accounts = trace_options.members.get("stateOverrides")
    fields = trace_options.members.get("blockOverrides")
    overrides = () if accounts is None else decode_state_overrides(accounts)
    env_overrides = None if fields is None else decode_block_overrides(fields)

    def start(kind: TraceKind) -> TraceStream:
        view = view_at(ctx, BlockTag.LATEST if block is BlockTag.PENDING else block)
        if view is None:
            raise BLOCK_NOT_FOUND()
        env = view.env if env_overrides is None else view.env_with(env_overrides)
        request = call.request(gas_for(ctx, call, view.header.gas_limit), strict=False)
        return trace_call(view.state, env, request, overrides, kind, ctx.limits.timeout_s)

    return await traced(ctx, trace_options, start)
