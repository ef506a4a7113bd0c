"""Searches logs of private transactions by group. Private logs are separate from public logs (privacy.md 9)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec.structs import replace

from ophion.native.privacy import PrivateLedger
from ophion.primitives.types import BlockTag, Hash32
from ophion.privacy.rpc_objects import log_objects
from ophion.rpc.errors import BLOCK_NOT_FOUND, RANGE_TOO_LARGE
from ophion.rpc.schema.wire_types import WireType
from ophion.rpc.services.block_reference import block_range
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.log_query import LogQuery, decode_ranged_or_hashed

if TYPE_CHECKING:
    from ophion.privacy.payloads import MarkerPosition

_BLOCKS_AT_ONCE: Final = 1024
MAX_LOGS: Final = 16_384
"""Maximum logs of one result. One private transaction has gas for two million logs, and each log is a Python object."""


class PrivateQuery(LogQuery, frozen=True):
    """A log query for one group."""

    group: bytes = b""


def of_group(query: LogQuery, group: bytes) -> PrivateQuery:
    """Return this log query, bound to a group."""
    return PrivateQuery(query.from_block, query.to_block, query.block_hash, query.addresses, query.topics, group)


def decode_private_search(value: object) -> LogQuery:
    """Decode the filter object of `priv_getLogs`; the default range is all blocks."""
    query = decode_ranged_or_hashed(value)
    assert isinstance(value, dict)
    return query if value.get("fromBlock") is not None else replace(query, from_block=BlockTag.EARLIEST)


PrivateSearchParam = Annotated[
    LogQuery,
    WireType(
        "filter", "filter object; fromBlock is the first block by default", {"type": "object"}, decode_private_search
    ),
]


async def search(ctx: RpcContext, query: PrivateQuery) -> list[dict[str, Any]]:
    """Return the logs of a group in a range of blocks, or in one block."""
    assert ctx.privacy is not None
    ledger = ctx.privacy.ledger
    if query.block_hash is not None:
        header = ctx.queries.header(query.block_hash)
        if header is None:
            raise BLOCK_NOT_FOUND()
        is_removed = not ctx.queries.is_canonical(header)
        return await ctx.lanes.read.run(lambda: block_logs(ledger, query, header.hash, header.number, is_removed))
    blocks = block_range(ctx, query.from_block, query.to_block)
    if not blocks:
        return []
    return await ctx.lanes.read.run(lambda: _range(ctx, ledger, query, blocks[0], blocks[-1]))


def _range(ctx: RpcContext, ledger: PrivateLedger, query: PrivateQuery, first: int, last: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while first <= last:
        blocks = ledger.blocks(query.group, first, _BLOCKS_AT_ONCE)
        for number, block in blocks:
            if number > last:
                return found
            found += block_logs(ledger, query, block, number)
            if len(found) > min(ctx.limits.max_logs or MAX_LOGS, MAX_LOGS):
                raise RANGE_TOO_LARGE()
        if len(blocks) < _BLOCKS_AT_ONCE:
            return found
        first = blocks[-1][0] + 1
    return found


def block_logs(
    ledger: PrivateLedger, query: PrivateQuery, block: Hash32, number: int, is_removed: bool = False
) -> list[dict[str, Any]]:
    """Return the logs of a group in one block, in the order of the privacy marker transactions."""
    from ophion.privacy.payloads import MarkerPosition  # lazy import: only private transactions need this module

    found = []
    for marker, _ in ledger.roots(query.group, number, block):
        found += marker_logs(ledger, query, MarkerPosition(b"", number, 0, block, marker), is_removed)
    return found


def marker_logs(
    ledger: PrivateLedger, query: LogQuery, place: MarkerPosition, is_removed: bool = False
) -> list[dict[str, Any]]:
    """Return the logs of one private transaction that match the query."""
    record = ledger.receipt(place.block, place.hash)
    if record is None:
        return []
    found = record.matching(query.addresses, query.topics, 0, MAX_LOGS + 1)
    if len(found) > MAX_LOGS:
        raise RANGE_TOO_LARGE()
    return log_objects(found, replace(place, index=record.index), is_removed)
