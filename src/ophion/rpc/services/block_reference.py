"""Resolves a block parameter to a view of the chain (json-rpc.md 3.3).

The result is null if the block is unknown or its state is pruned. `pending` is the real pending block, which is built
again if head or pool have changed since the last request. So reads at `pending` return an awaitable; other reads return
a plain value.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ophion.chain.queries import SHORT_GAS, BlockView
from ophion.errors import MissingStateError
from ophion.native.exceptions import MissingState
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import BlockTag
from ophion.rpc.errors import INVALID_INPUT, invalid_params
from ophion.rpc.schema.wire_types import BlockId, CanonicalHash
from ophion.rpc.services.context import RpcContext

T = TypeVar("T")


def header_at(ctx: RpcContext, block: BlockId) -> HashedHeader | None:
    """Return the header of a block parameter: the head for `pending`, None if the block is unknown."""
    if isinstance(block, CanonicalHash):
        header = ctx.queries.header(block.hash)
        if header is not None and not ctx.queries.is_canonical(header):
            raise INVALID_INPUT("the block is not canonical")
        return header
    return ctx.queries.header(block)


def view_at(ctx: RpcContext, block: BlockId) -> BlockView | None:
    """Return a block with its state and environment; None if the block or its state is missing. `pending` is not
    supported.
    """
    if isinstance(block, CanonicalHash):
        header = header_at(ctx, block)
        return None if header is None else ctx.queries.view(header.hash)
    return ctx.queries.view(block)


def is_long(header: Header) -> bool:
    """Return whether rendering all transactions of a block may take too long for the event loop."""
    return header.gas_used > SHORT_GAS


def read_at(ctx: RpcContext, block: BlockId, read: Callable[[BlockView], T]) -> T | Awaitable[T | None] | None:
    """Call `read` with a block. Returns None if the block or its state is missing."""
    if block is BlockTag.PENDING:
        pending = ctx.queries.pending_now
        return _read_pending(ctx, read) if pending is None else read(pending)
    view = view_at(ctx, block)
    return None if view is None else _read(view, read)


async def read_in_lane(ctx: RpcContext, block: BlockId, read: Callable[[BlockView], T]) -> T | None:
    """Call `read` with a block in the read lane (worker threads), because the read takes too long for the event loop.
    Returns None if the block or its state is missing.
    """
    view = await ctx.queries.pending() if block is BlockTag.PENDING else view_at(ctx, block)
    return None if view is None else await ctx.lanes.read.run(lambda: _read(view, read))


async def _read_pending(ctx: RpcContext, read: Callable[[BlockView], T]) -> T | None:
    return read(await ctx.queries.pending())


def _read(view: BlockView, read: Callable[[BlockView], T]) -> T | None:
    try:
        return read(view)
    except (MissingState, MissingStateError):  # the state was pruned during the read
        return None


def block_range(ctx: RpcContext, first: BlockTag | int, last: BlockTag | int) -> range:
    """Return the block numbers from `first` to `last`, both included, limited by the head.

    Raises -32602 if `first` is above `last`. A range from a future block to a tag is empty.
    """
    start, end = _number(ctx, first), _number(ctx, last)
    head = ctx.queries.head_number
    # a range from a future block to a tag such as `latest` is empty and not an error
    is_ahead = start > head and not isinstance(last, int)
    if start > end and not is_ahead:
        raise invalid_params("Invalid block range params: fromBlock is above toBlock")
    return range(start, min(end, head) + 1) if start >= 0 else range(0)


def _number(ctx: RpcContext, block: BlockTag | int) -> int:
    if isinstance(block, int):
        return block
    header = ctx.queries.header(block)
    assert header is not None, "a tag names a block"
    return header.number
