"""Call tree and source steps of a transaction, with the names of the contracts that a development node knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from ophion.dev.execution_observer import ExecutionObserver
from ophion.errors import RpcError
from ophion.native.tracing import TraceKind
from ophion.primitives.types import Address, Hash32
from ophion.rpc.errors import LIMIT_EXCEEDED_CODE
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import HashParam
from ophion.rpc.services.cheat_code_params import Json, NumberParam, dev_of
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.tracing import transaction_trace

_MAX_ROWS = 200_000
_MAX_CALL_DEPTH = 100
"""Maximum depth of a call tree. JSON encoders refuse an answer that nests deeper than 250 levels."""
_CALLS = TraceKind.calls(with_log=True, with_pc=True)
_ROWS = TraceKind.standard_logs(
    storage=False, memory=False, stack=False, return_data=False, limit=_MAX_ROWS, opcodes=None
)


@method("debug_callTree", needs={"dev"})
async def call_tree(ctx: RpcContext, hash: HashParam) -> Json:
    """Returns the calls of a mined transaction with names, decoded values and source lines (`--artifacts`).

    Null if the transaction is not mined.
    """
    observer, frame = dev_of(ctx).observer, await _traced(ctx, hash, _CALLS)
    if frame is None or observer is None:
        return None
    _check_depth(frame)
    return await ctx.lanes.trace.run(lambda: observer.call_tree(frame, _code_of(ctx, hash)))


@method("debug_sourceSteps", needs={"dev"})
async def source_steps(ctx: RpcContext, hash: HashParam) -> Json:
    """Returns the source lines that a mined transaction visits, in order, and their files (`--artifacts`).

    Null if the transaction is not mined.
    """
    observer: ExecutionObserver | None = dev_of(ctx).observer
    frame = await _traced(ctx, hash, _CALLS)
    if frame is not None:
        _check_depth(frame)
    rows = None if frame is None else await _traced(ctx, hash, _ROWS)
    if frame is None or rows is None or observer is None:
        return None
    return await ctx.lanes.trace.run(lambda: observer.source_steps(rows["structLogs"], frame, _code_of(ctx, hash)))


@method("debug_stepValues", needs={"dev"})
async def step_values(ctx: RpcContext, hash: HashParam, position: NumberParam) -> Json:
    """Returns stack, memory and storage before an instruction of a mined transaction, given by its position.

    The storage has the slots that the contract has accessed so far. Null if there is no such instruction.
    """
    kind = TraceKind.standard_logs(
        storage=True, memory=True, stack=True, return_data=False, limit=None, opcodes=None, only=min(position, 2**63)
    )
    found = await _traced(ctx, hash, kind)
    return None if found is None else next(iter(found["structLogs"]), None)


async def _traced(ctx: RpcContext, hash: Hash32, kind: TraceKind) -> Mapping[str, Any] | None:
    text = await transaction_trace(ctx, hash, kind)
    if text is None:
        return None
    try:
        read: Mapping[str, Any] = await ctx.lanes.trace.run(lambda: orjson.loads(text))
    except orjson.JSONDecodeError:  # the parser refuses text that nests too deeply
        raise _too_deep() from None
    return read


def _check_depth(frame: Mapping[str, Any]) -> None:
    """Raise an error if a call tree is too deep."""
    level, depth = [frame], 0
    while level:
        depth += 1
        if depth > _MAX_CALL_DEPTH:
            raise _too_deep()
        level = [call for one in level for call in one.get("calls", ())]


def _too_deep() -> RpcError:
    return RpcError(
        LIMIT_EXCEEDED_CODE,
        f"The calls of this transaction nest deeper than {_MAX_CALL_DEPTH}. debug_traceTransaction returns them.",
    )


def _code_of(ctx: RpcContext, hash: Hash32) -> Callable[[Address], bytes]:
    """Return a function that reads contract code after the block of a transaction, including contracts created in that
    block.
    """
    position = ctx.queries.transaction_position(hash)
    header = None if position is None else ctx.queries.chain.header(position[0])
    return (lambda address: b"") if header is None else ctx.queries.chain.state(header.header).code
