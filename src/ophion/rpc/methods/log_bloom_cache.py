"""admin_*LogBloomCache, admin_logs*Cache: Besu's cache of log blooms, which log queries of Ophion do not need.

The methods check their parameters, change nothing and answer like a Besu whose cache is complete.
"""

from __future__ import annotations

from typing import Annotated, Any

from ophion.primitives.types import BlockTag
from ophion.rpc.errors import BLOCK_NOT_FOUND, invalid_params
from ophion.rpc.schema.registry import Example, method
from ophion.rpc.schema.wire_types import BlockNumberParam, object_result
from ophion.rpc.services.block_reference import header_at
from ophion.rpc.services.context import RpcContext

_TEXT = {"type": "string"}
CacheStatusResult = Annotated[
    dict[str, Any],
    object_result(
        "cache status",
        "blocks that the cache covers",
        {
            "type": "object",
            "properties": {
                "startBlock": _TEXT,
                "endBlock": _TEXT,
                "currentBlock": _TEXT,
                "caching": {"type": "boolean"},
                "requestAccepted": {"type": "boolean"},
            },
        },
    ),
]
StatusResult = Annotated[
    dict[str, str],
    object_result("status", "outcome in one phrase", {"type": "object", "properties": {"Status": _TEXT}}),
]


@method("admin_generateLogBloomCache")
def generate(
    ctx: RpcContext, start: BlockNumberParam | None = None, end: BlockNumberParam | None = None
) -> CacheStatusResult:
    """Accepted for compatibility: log queries need no cache. Returns the requested range as if it were cached."""
    head = ctx.queries.head_number
    first = 0 if start is None else min(_number(ctx, start), head)
    last = head if end is None else min(_number(ctx, end), head)
    return {
        "startBlock": hex(first),
        "endBlock": hex(last),
        "currentBlock": hex(last),
        "caching": False,
        "requestAccepted": True,
    }


@method("admin_logsRepairCache", examples=[Example([], {"Status": "Started"})])
def repair(ctx: RpcContext, block: BlockNumberParam | None = None) -> StatusResult:
    """Accepted for compatibility: log queries need no cache, so there is nothing to repair."""
    if block is not None:
        _known(ctx, block)
    return {"Status": "Started"}


@method("admin_logsRemoveCache", examples=[Example([], {"Status": "Cache Removed"})])
def remove(ctx: RpcContext, start: BlockNumberParam | None = None, end: BlockNumberParam | None = None) -> StatusResult:
    """Accepted for compatibility: log queries need no cache, so there is nothing to remove."""
    first = 0 if start is None else _known(ctx, start)
    last = first if end is None else _known(ctx, end)
    if last < first:
        raise invalid_params("the last block is before the first")
    return {"Status": "Cache Removed"}


def _number(ctx: RpcContext, block: BlockTag | int) -> int:
    if isinstance(block, BlockTag):
        return 0 if block is BlockTag.EARLIEST else ctx.queries.head_number
    return block


def _known(ctx: RpcContext, block: BlockTag | int) -> int:
    number = _number(ctx, block)
    if header_at(ctx, number) is None:
        raise BLOCK_NOT_FOUND()
    return number
