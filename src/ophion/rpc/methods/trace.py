"""trace_*: flat call traces, and replayed transactions with their effects (json-rpc.md 7.3)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final

from msgspec import Struct

from ophion.chain.queries import BlockView
from ophion.errors import RpcError
from ophion.native.exceptions import DecodeError
from ophion.native.tracing import (
    CallRefused,
    TracedBlock,
    TraceKind,
    TraceStream,
    trace_block,
    trace_call,
    trace_calls,
    trace_flat,
    trace_signed,
    trace_transaction,
)
from ophion.native.transactions import Body, decode_transactions
from ophion.primitives.types import Address, BlockTag
from ophion.rpc.errors import BLOCK_NOT_FOUND, INTERNAL_ERROR, RANGE_TOO_LARGE, STATE_UNAVAILABLE, invalid_params
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import (
    BlockId,
    BlockNumberParam,
    BlockParam,
    DataParam,
    HashParam,
    WireType,
    decode_address,
    decode_block_number,
    decode_index,
    spliced_result,
)
from ophion.rpc.services.block_reference import block_range, header_at, view_at
from ophion.rpc.services.call_execution import gas_for
from ophion.rpc.services.call_object import Call, CallParam, decode_call
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.tracing import (
    TraceResult,
    recent_key,
    recent_transaction_key,
    streamed,
    traced_block,
    transaction_at,
    whole_trace,
)

_EVERYTHING: Final = (1 << 64) - 1
_EMPTY: Final = b"[]"
_FLAT: Final = b"flat"
"""Name under which the trace cache stores results of `trace_block`."""

TraceEntry = Annotated[bytes, spliced_result("trace entry", "one entry of a flat trace", {"type": "object"})]


# --- parameters ----------------------------------------------------------------------------------


def _decode_types(value: object) -> TraceKind:
    if type(value) is not list:
        raise invalid_params("trace types: an array is expected")
    wanted = {one.lower() if type(one) is str else None for one in value}
    if not wanted <= {"trace", "vmtrace", "statediff"}:
        raise invalid_params("trace types: trace, vmTrace and stateDiff are known")
    return TraceKind.replay(trace="trace" in wanted, vm_trace="vmtrace" in wanted, state_diff="statediff" in wanted)


def _decode_calls(value: object) -> list[tuple[Call, TraceKind]]:
    if type(value) is not list:
        raise invalid_params("calls: an array of [call, types] is expected")
    for pair in value:
        if type(pair) is not list or len(pair) != 2:
            raise invalid_params("calls: an array of [call, types] is expected")
    return [(decode_call(call), _decode_types(types)) for call, types in value]


def _decode_address_in_trace(value: object) -> list[int]:
    if type(value) is not list:
        raise invalid_params("trace address: an array of indices is expected")
    return [decode_index(one) for one in value]


class TraceFilter(Struct, frozen=True):
    """Block range, addresses and paging of `trace_filter`."""

    first: BlockTag | int
    last: BlockTag | int
    senders: Sequence[Address]
    recipients: Sequence[Address]
    after: int
    count: int


def _decode_filter(value: object) -> TraceFilter:
    if type(value) is not dict:
        raise invalid_params("filter: an object is expected")
    return TraceFilter(
        first=_block(value, "fromBlock"),
        last=_block(value, "toBlock"),
        senders=_addresses(value, "fromAddress"),
        recipients=_addresses(value, "toAddress"),
        after=_count(value, "after", 0),
        count=_count(value, "count", _EVERYTHING),
    )


def _block(value: Mapping[str, Any], name: str) -> BlockTag | int:
    raw = value.get(name)
    return BlockTag.LATEST if raw is None else decode_block_number(raw)


def _addresses(value: Mapping[str, Any], name: str) -> list[Address]:
    raw = value.get(name)
    if raw is None:
        return []
    return [decode_address(one) for one in raw] if type(raw) is list else [decode_address(raw)]


def _count(value: Mapping[str, Any], name: str, default: int) -> int:
    raw = value.get(name)
    return default if raw is None else decode_index(raw)


_TYPES_SCHEMA: Final = {"type": "array", "items": {"enum": ["trace", "vmTrace", "stateDiff"]}}
TypesParam = Annotated[
    TraceKind, WireType("trace types", "what to trace: trace, vmTrace, stateDiff", _TYPES_SCHEMA, _decode_types)
]
CallsParam = Annotated[
    list[tuple[Call, TraceKind]],
    WireType("calls", "calls, each with its trace types", {"type": "array", "items": {"type": "array"}}, _decode_calls),
]
TraceAddressParam = Annotated[
    list[int],
    WireType(
        "trace address",
        "index path of an entry in the call tree",
        {"type": "array", "items": {"type": "string"}},
        _decode_address_in_trace,
    ),
]
FilterParam = Annotated[
    TraceFilter,
    WireType(
        "trace filter",
        "block range, senders, recipients, number of entries to skip and to return",
        {
            "type": "object",
            "properties": {
                "fromBlock": {"type": "string"},
                "toBlock": {"type": "string"},
                "fromAddress": {"type": "array"},
                "toAddress": {"type": "array"},
                "after": {"type": "integer"},
                "count": {"type": "integer"},
            },
        },
        _decode_filter,
    ),
]


# --- flat traces ---------------------------------------------------------------------------------


@method("trace_block", needs={"state"})
async def trace_whole_block(ctx: RpcContext, block: BlockNumberParam) -> TraceResult | None:
    """Returns all calls, creations, self-destructs and rewards of a block; null if the block is unknown.

    Returns `[]` for the genesis block.
    """
    header = header_at(ctx, block)
    if header is not None and header.number == 0:
        return _EMPTY

    def start() -> TraceStream:
        blocks = [traced_block(ctx, header)]
        return trace_flat(blocks, None, (), (), 0, _EVERYTHING, None, ctx.limits.timeout_s)

    return await streamed(ctx, start, recent_key(ctx, header, _FLAT))


@method("trace_transaction", needs={"state"})
async def trace_mined(ctx: RpcContext, hash: HashParam) -> TraceResult:
    """Returns all calls, creations and self-destructs of a transaction; `[]` if the transaction is not mined."""

    def start() -> TraceStream:
        block, index = transaction_at(ctx, hash)
        return trace_flat([block], index, (), (), 0, _EVERYTHING, None, ctx.limits.timeout_s)

    return await streamed(ctx, start, recent_transaction_key(ctx, hash, _FLAT)) or _EMPTY


@method("trace_get", needs={"state"})
async def get(ctx: RpcContext, hash: HashParam, address: TraceAddressParam) -> TraceEntry | None:
    """Returns one trace entry of a mined transaction by its trace address; null if the entry does not exist."""

    def start() -> TraceStream:
        block, index = transaction_at(ctx, hash)
        return trace_flat([block], index, (), (), 0, 1, address, ctx.limits.timeout_s)

    text = await whole_trace(ctx, start)
    return None if text is None else text[1:-1] or None


@method("trace_filter", needs={"state"})
async def filter_traces(ctx: RpcContext, filter: FilterParam) -> TraceResult:
    """Returns trace entries of a block range by sender and recipient, in order.

    A range that exceeds the newest block ends at this block. A reversed range is an error. A range with pruned states
    is an error too, because an incomplete result would look complete.
    """
    numbers = block_range(ctx, filter.first, filter.last)
    most = ctx.limits.max_trace_range
    if most and len(numbers) > most + 1:
        raise RANGE_TOO_LARGE()
    if not numbers or numbers[-1] == 0:
        return _EMPTY

    def start() -> TraceStream:
        blocks = [_canonical(ctx, number) for number in numbers if number]
        return trace_flat(
            blocks,
            None,
            filter.senders,
            filter.recipients,
            filter.after,
            filter.count,
            None,
            ctx.limits.timeout_s,
        )

    found = await streamed(ctx, start)
    if found is None:
        oldest = ctx.queries.chain.oldest_state
        raise STATE_UNAVAILABLE(f"states before block {oldest} are not kept" if oldest else None)
    return found


def _canonical(ctx: RpcContext, number: int) -> TracedBlock:
    return traced_block(ctx, ctx.queries.chain.canonical(number))


# --- replays -------------------------------------------------------------------------------------


async def _replayed(ctx: RpcContext, start: Callable[[], TraceStream]) -> TraceResult | None:
    """Return the result of a replay. With a preset of the development node, the steps of `vmTrace` have names."""
    if not ctx.has_preset:
        return await streamed(ctx, start)
    text = await whole_trace(ctx, start)
    if text is None or b'"ops":[' not in text:
        return text
    # lazy import: only nodes with a preset name the steps
    from ophion.rpc.services.vm_trace_names import with_names

    return await ctx.lanes.read.run(lambda: with_names(text))


@method("trace_replayBlockTransactions", needs={"state"})
async def replay_block_transactions(ctx: RpcContext, block: BlockNumberParam, types: TypesParam) -> TraceResult | None:
    """Replays all transactions of a block with the given trace types."""
    header = header_at(ctx, block)
    if header is not None and header.number == 0:
        return _EMPTY
    return await _replayed(ctx, lambda: trace_block(traced_block(ctx, header), types, False, ctx.limits.timeout_s))


@method("trace_replayTransaction", needs={"state"})
async def replay_transaction(ctx: RpcContext, hash: HashParam, types: TypesParam) -> TraceResult | None:
    """Replays a transaction with the given trace types; null if the transaction is not mined."""

    def start() -> TraceStream:
        block, index = transaction_at(ctx, hash)
        return trace_transaction(block, index, types, ctx.limits.timeout_s)

    return await _replayed(ctx, start)


@method("trace_call", needs={"state"})
async def call(
    ctx: RpcContext, call: CallParam, types: TypesParam, block: BlockParam = BlockTag.LATEST
) -> TraceResult | None:
    """Executes a call on the state after a block with the given trace types."""

    def start() -> TraceStream:
        view = _view(ctx, block)
        request = call.request(gas_for(ctx, call, view.header.gas_limit))
        return trace_call(view.state, view.env, request, (), types, ctx.limits.timeout_s)

    return await _replayed(ctx, start)


def _view(ctx: RpcContext, block: BlockId) -> BlockView:
    view = view_at(ctx, BlockTag.LATEST if block is BlockTag.PENDING else block)
    if view is None:
        raise BLOCK_NOT_FOUND()
    return view


@method("trace_callMany", needs={"state"})
async def call_many(ctx: RpcContext, calls: CallsParam, block: BlockParam) -> TraceResult | None:
    """Executes several calls, each on the state after the previous call. If a call is invalid, no call is traced."""

    def start() -> TraceStream:
        view = _view(ctx, block)
        limit = view.header.gas_limit
        requests = [(call.request(gas_for(ctx, call, limit)), types) for call, types in calls]
        return trace_calls(view.state, view.env, requests, ctx.limits.timeout_s)

    try:
        return await _replayed(ctx, start)
    except RpcError as error:
        if isinstance(error.__cause__, CallRefused):
            raise INTERNAL_ERROR(error.message) from error
        raise


@method("trace_rawTransaction", needs={"state"})
async def raw_transaction(ctx: RpcContext, transaction: DataParam, types: TypesParam) -> TraceResult | None:
    """Executes a signed transaction on the state of the head with the given trace types, but does not send it."""
    try:
        (decoded,) = decode_transactions([transaction])
    except DecodeError as error:
        raise invalid_params(f"transaction: {error}") from error
    if isinstance(decoded, str):
        raise invalid_params(f"transaction: {decoded}")

    def start() -> TraceStream:
        view = _view(ctx, BlockTag.LATEST)
        body = Body.of([decoded.raw], [], None)
        return trace_signed(view.state, view.env, body, types, ctx.limits.timeout_s)

    return await _replayed(ctx, start)
