"""Log searches: their limits, and the choice between event loop and worker threads (read lane).

Searches of a few small blocks run on the event loop. All other searches run in the read lane with the deadline of the
request. The result is JSON text from the Rust extension. A result of more than one piece is streamed, so that it takes
little memory.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Final

from ophion.chain.queries import SHORT_GAS
from ophion.errors import RpcError, StorageError
from ophion.native.exceptions import translated
from ophion.native.store import LogStream
from ophion.primitives.header import HashedHeader
from ophion.rpc.errors import BLOCK_NOT_FOUND, RANGE_TOO_LARGE, is_limit
from ophion.rpc.schema.schemas import LOGS_JSON
from ophion.rpc.services.block_reference import block_range, is_long
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.filters import ChainChange, LogChanges
from ophion.rpc.services.log_query import LogQuery
from ophion.rpc.transport.streaming import StreamedResult, opened

NOTHING = b"[]"
LogsResult = Annotated[bytes | StreamedResult, LOGS_JSON]
_FEW_BLOCKS: Final = 16
_NO_LIMIT: Final = 2**63 - 1
_LOG_MEMBER: Final = b'"logIndex":'
"""A JSON key that occurs once in each log. So the number of occurrences in a result is the number of logs."""


async def search(ctx: RpcContext, query: LogQuery) -> bytes | StreamedResult:
    """Return the logs of one block or of a block range. A range that exceeds the head ends at the head (json-rpc.md
    5.6).
    """
    if query.block_hash is not None:
        return await _in_block(ctx, query)
    blocks = block_range(ctx, query.from_block, query.to_block)
    if not blocks:
        return NOTHING
    most = ctx.limits.max_logs_range
    if most and len(blocks) > most + 1:
        raise RANGE_TOO_LARGE()
    return await _streamed(ctx, query, blocks[0], blocks[-1])


async def _in_block(ctx: RpcContext, query: LogQuery) -> bytes:
    assert query.block_hash is not None
    header = ctx.queries.header(query.block_hash)
    if header is None:
        raise BLOCK_NOT_FOUND()
    return await _of_block(ctx, query, header, is_removed=not ctx.queries.is_canonical(header))


async def _of_block(ctx: RpcContext, query: LogQuery, header: HashedHeader, is_removed: bool) -> bytes:
    def read() -> bytes:
        found = ctx.queries.store.block_logs_json(header.hash, query.addresses, query.topics, is_removed)
        return found or NOTHING

    return await ctx.lanes.read.run(read) if is_long(header.header) else read()


async def _streamed(ctx: RpcContext, query: LogQuery, first: int, last: int) -> bytes | StreamedResult:
    """Search a block range. A large result is streamed; while too many streams are open, the result is collected
    instead.
    """
    if _is_short(ctx, first, last):
        return await _range(ctx, query, first, last)
    try:
        return await opened(ctx.lanes.read, ctx.streams, lambda: _LogSource(ctx, query, first, last), reads_ahead=True)
    except RpcError:  # too many streams are open; `opened` raises no other `RpcError`
        return await _range(ctx, query, first, last)


class _LogSource:
    """Produces the pieces of a log search."""

    __slots__ = ("_stream",)

    def __init__(self, ctx: RpcContext, query: LogQuery, first: int, last: int) -> None:
        limits = ctx.limits
        with translated():
            self._stream = LogStream(
                ctx.queries.store,
                first,
                last,
                query.addresses,
                query.topics,
                limits.max_logs or _NO_LIMIT,
                limits.timeout_s,
            )

    def next(self) -> bytes | None:
        with translated():
            return self._stream.next()

    def close(self) -> None:
        self._stream.close()


async def _range(ctx: RpcContext, query: LogQuery, first: int, last: int) -> bytes:
    """Search a block range, and return the whole result."""
    limits = ctx.limits

    def read() -> bytes:
        with translated():
            return ctx.queries.store.logs_json(
                first,
                last,
                query.addresses,
                query.topics,
                limits.max_logs or _NO_LIMIT,
                limits.max_response_bytes,
                limits.timeout_s,
            )

    return read() if _is_short(ctx, first, last) else await ctx.lanes.read.run(read)


def _is_short(ctx: RpcContext, first: int, last: int) -> bool:
    """Whether searching a block range takes less time than a switch to a worker thread."""
    if last - first >= _FEW_BLOCKS:
        return False
    headers = [ctx.queries.header(number) for number in range(first, last + 1)]
    return sum(0 if header is None else header.header.gas_used for header in headers) <= SHORT_GAS


async def changes_of(ctx: RpcContext, changes: LogChanges) -> tuple[bytes, int]:
    """Return the logs that a filter has to deliver, and the number of blocks that these logs cover. A size limit may
    reduce this number.
    """
    count = len(changes.blocks)
    while True:
        try:
            text = await changed(ctx, changes.query, changes.wanted(count))
        except StorageError as error:
            if count <= 1 or not is_limit(error):
                raise
        else:
            if count <= 1 or len(text) <= ctx.limits.max_response_bytes:
                return text, count
        count //= 2


async def changed(ctx: RpcContext, query: LogQuery, blocks: tuple[ChainChange, ...]) -> bytes:
    """Return the logs of blocks that joined or left the chain, in the order of `blocks`.

    Searches many consecutive canonical blocks as one range. Searches a few blocks one by one, so that filters with the
    same query share the cached result of each block. A few blocks with more logs than a response holds are searched as
    a range too, which raises the error of the limit.
    """
    parts: list[bytes] = []
    for run in _runs(blocks):
        newest = run[-1]
        header = ctx.queries.header(newest.number) if len(run) > 1 else None
        is_range = not newest.is_removed and header is not None and header.hash == newest.hash
        if is_range and len(run) > _FEW_BLOCKS:
            found = [await _range(ctx, query, run[0].number, newest.number)]
        else:
            headers = [(ctx.queries.header(one.hash), one.is_removed) for one in run]
            found = [await _of_cached(ctx, query, header, gone) for header, gone in headers if header is not None]
            if is_range and 0 < ctx.limits.max_logs < sum(text.count(_LOG_MEMBER) for text in found):
                found = [await _range(ctx, query, run[0].number, newest.number)]
        parts += found
    inner = [part[1:-1] for part in parts if part != NOTHING]
    return b"[" + b",".join(inner) + b"]"


async def _of_cached(ctx: RpcContext, query: LogQuery, header: HashedHeader, is_removed: bool) -> bytes:
    cache = ctx.filters.log_cache
    text = cache.get(header.hash, is_removed, query)
    if text is None:
        text = await _of_block(ctx, query, header, is_removed)
        cache.keep(header.hash, is_removed, query, text)
    return text


def _runs(blocks: tuple[ChainChange, ...]) -> list[list[ChainChange]]:
    """Group blocks into runs of consecutive blocks on one branch."""
    if not blocks:
        return []
    runs = [[blocks[0]]]
    for before, after in pairwise(blocks):
        if not before.is_removed and not after.is_removed and after.number == before.number + 1:
            runs[-1].append(after)
        else:
            runs.append([after])
    return runs
