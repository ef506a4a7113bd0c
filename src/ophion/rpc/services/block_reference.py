"""From a block parameter to a view of the chain, for handlers that read at a block.

Two rules of json-rpc.md 3.3 live here: a block that is not there, or whose state is not kept, gives null; and `pending`
is the real pending block, which has to be built when nobody has asked for it since head or pool changed. Reading at any
other block needs no wait, so the result is a plain value there and an awaitable only for `pending`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ophion.chain.queries import SHORT_GAS, BlockView
from ophion.errors import MissingStateError
from ophion.native.exceptions import MissingState
from ophion.primitives.block import HashedHeader, Header
from ophion.primitives.types import BlockTag
from ophion.rpc.errors import INVALID_INPUT, invalid_params
from ophion.rpc.schema.wire_types import BlockId, CanonicalHash
from ophion.rpc.services.context import RpcContext

T = TypeVar("T")


def header_at(ctx: RpcContext, block: BlockId) -> HashedHeader | None:
    """The header a parameter names; the head for `pending`, None when there is no such block."""
    if isinstance(block, CanonicalHash):
        header = ctx.queries.header(block.hash)
        if header is not None and not ctx.queries.is_canonical(header):
            raise INVALID_INPUT("the block is not canonical")
        return header
    return ctx.queries.header(block)


def view_at(ctx: RpcContext, block: BlockId) -> BlockView | None:
    """The block with state and environment; not for `pending`."""
    if isinstance(block, CanonicalHash):
        header = header_at(ctx, block)
        return None if header is None else ctx.queries.view(header.hash)
    return ctx.queries.view(block)


def is_long(header: Header) -> bool:
    """Whether it may take too long for the loop to tell everything that happened in a block."""
    return header.gas_used > SHORT_GAS


def read_at(ctx: RpcContext, block: BlockId, read: Callable[[BlockView], T]) -> T | Awaitable[T | None] | None:
    """Read something at a block; None when the block or its state is not there."""
    if block is BlockTag.PENDING:
        pending = ctx.queries.pending_now
        return _read_pending(ctx, read) if pending is None else read(pending)
    view = view_at(ctx, block)
    return None if view is None else _read(view, read)


async def read_in_lane(ctx: RpcContext, block: BlockId, read: Callable[[BlockView], T]) -> T | None:
    """The same in the read lane, for what would hold the loop too long."""
    view = await ctx.queries.pending() if block is BlockTag.PENDING else view_at(ctx, block)
    return None if view is None else await ctx.lanes.read.run(lambda: _read(view, read))


async def _read_pending(ctx: RpcContext, read: Callable[[BlockView], T]) -> T | None:
    return read(await ctx.queries.pending())


def _read(view: BlockView, read: Callable[[BlockView], T]) -> T | None:
    try:
        return read(view)
    except (MissingState, MissingStateError):  # the former when it was dropped while somebody read it
        return None


def block_range(ctx: RpcContext, first: BlockTag | int, last: BlockTag | int) -> range:
    """The blocks from one to another, both included, as far as the chain has come; empty beyond its head.

    A range that goes backwards is -32602: whoever asks for it expects something else than nothing.
    """
    start, end = _number(ctx, first), _number(ctx, last)
    head = ctx.queries.head_number
    is_ahead = start > head and not isinstance(last, int)  # after the newest block, until the newest block
    if start > end and not is_ahead:
        raise invalid_params("Invalid block range params: fromBlock is above toBlock")
    return range(start, min(end, head) + 1) if start >= 0 else range(0)


def _number(ctx: RpcContext, block: BlockTag | int) -> int:
    if isinstance(block, int):
        return block
    header = ctx.queries.header(block)
    assert header is not None, "a tag names a block"
    return header.number
