"""From the parameters of a tracing method to a stream of its answer.

Everything that reads the database happens in the trace lane, never on the event loop; the EVM itself runs in a thread
of the extension.
"""

from __future__ import annotations

from collections.abc import Callable

from ophion.chain.block import ommers_of
from ophion.chain.environment import block_env
from ophion.errors import MissingStateError
from ophion.native.failures import MissingState, NativeError
from ophion.native.tracing import CallRefused, TimedOut, TracedBlock, TraceStream
from ophion.native.transactions import Body
from ophion.primitives.block import HashedHeader
from ophion.primitives.types import Hash32
from ophion.rpc.calls import refused
from ophion.rpc.context import RpcContext
from ophion.rpc.errors import TIMEOUT_EXPIRED
from ophion.rpc.streaming import Streamed, opened

_REACH = 256
"""How many ancestors BLOCKHASH sees."""


class Nothing(Exception):  # noqa: N818  # not an error: the answer is null
    """There is no such block, or its state is not kept."""


async def streamed(ctx: RpcContext, start: Callable[[], TraceStream]) -> bytes | Streamed | None:
    """The answer that a stream makes; None (null) where there is nothing to trace."""
    try:
        return await opened(ctx.lanes.trace, start)
    except (Nothing, MissingState, MissingStateError):
        return None
    except TimedOut as error:
        raise TIMEOUT_EXPIRED() from error
    except CallRefused as error:
        raise refused(str(error)) from error


def traced_block(ctx: RpcContext, header: HashedHeader | None, body: Body | None = None) -> TracedBlock:
    """A block with the state it was built on; `Nothing` for an unknown one and for genesis."""
    if header is None or header.number == 0:
        raise Nothing
    chain = ctx.queries.chain
    parent = chain.header(header.parent_hash)
    body = body or chain.store.body(header.hash)
    if parent is None or body is None:
        raise Nothing
    hashes = None if chain.is_canonical(parent) else _ancestor_hashes(ctx, parent)
    env = block_env(chain.spec, chain.rules, header.header, chain.engine.beneficiary(header), hashes)
    return TracedBlock(parent=chain.store.state(parent.header.state_root), env=env, body=body, hash=header.hash)


def _ancestor_hashes(ctx: RpcContext, parent: HashedHeader) -> bytes:
    """Hashes of a side block's ancestors, newest first."""
    chain = ctx.queries.chain
    hashes, cursor = [parent.hash], parent
    while len(hashes) < _REACH and cursor.number > 0:
        hashes.append(cursor.parent_hash)
        above = chain.header(cursor.parent_hash)
        if above is None:
            break
        cursor = above
    return b"".join(hashes)


def transaction_at(ctx: RpcContext, hash: Hash32) -> tuple[TracedBlock, int]:
    """The block of a mined transaction and its place there; `Nothing` when it is not mined."""
    position = ctx.queries.transaction_position(hash)
    if position is None:
        raise Nothing
    return traced_block(ctx, ctx.queries.chain.header(position[0])), position[2]


__all__ = ["NativeError", "Nothing", "ommers_of", "streamed", "traced_block", "transaction_at"]
