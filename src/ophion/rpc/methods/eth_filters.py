"""eth_*: logs, polling filters and subscriptions (json-rpc.md 5.6, 1.10)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import cast

from ophion.errors import PrivacyRefused
from ophion.primitives.hexcodec import data
from ophion.rpc.errors import FILTER_NOT_FOUND, LOGS_FILTER_NOT_FOUND
from ophion.rpc.schema.registry import WEBSOCKET, Caller, Example, client_of, method
from ophion.rpc.schema.schemas import FilterChangesJson
from ophion.rpc.schema.wire_types import Boolean, Quantity, Text, TextParam, encode_json
from ophion.rpc.services import log_search
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.filters import FilterKind, LogChanges
from ophion.rpc.services.log_query import LogQueryParam, LogSearchParam
from ophion.rpc.services.log_search import LogsResult
from ophion.rpc.services.subscriptions import AnyParam, OptionsParam, Subscriber, read_id


@method(
    "eth_getLogs",
    needs={"chain"},
    examples=[
        Example(
            [{"fromBlock": "0x17", "toBlock": "0x17"}],
            [
                {
                    "logIndex": "0x0",
                    "removed": False,
                    "blockNumber": "0x17",
                    "blockHash": "0x3c419f39b340a4c35cc27b8f7880b779dc1abb9814ad13a2a5a55b885cc8ec2d",
                    "blockTimestamp": "0x561bc31b",
                    "transactionHash": "0x97a385bf570ced7821c6495b3877ddd2afd5c452f350f0d4876e98d9161389c6",
                    "transactionIndex": "0x0",
                    "address": "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f",
                    "data": "0x000000000000000000000000000000000000000000000000000000000000002a",
                    "topics": ["0x65c9ac8011e286e89d02a269890f41d67ca2cc597b2c76c7c69321ff492be580"],
                }
            ],
        )
    ],
)
async def get_logs(ctx: RpcContext, filter: LogSearchParam) -> LogsResult:
    """Returns the logs of a block range, or of one block by hash, that match addresses and topics.

    A range that exceeds the newest block ends at this block. A reversed range and an unknown hash are errors.
    """
    return await log_search.search(ctx, filter)


@method("eth_newFilter", needs={"chain"})
def new_filter(ctx: RpcContext, caller: Caller, filter: LogQueryParam) -> Text:
    """Installs a filter for logs of new blocks; returns its id."""
    return ctx.filters.install(FilterKind.LOGS, filter, client_of(caller))


@method("eth_newBlockFilter", needs={"chain"})
def new_block_filter(ctx: RpcContext, caller: Caller) -> Text:
    """Installs a filter for hashes of new blocks; returns its id."""
    return ctx.filters.install(FilterKind.BLOCKS, client=client_of(caller))


@method("eth_newPendingTransactionFilter", needs={"pool"})
def new_pending_transaction_filter(ctx: RpcContext, caller: Caller) -> Text:
    """Installs a filter for hashes of transactions that enter the pool; returns its id."""
    return ctx.filters.install(FilterKind.PENDING, client=client_of(caller))


@method("eth_uninstallFilter", examples=[Example(["0x31"], False)])
def uninstall_filter(ctx: RpcContext, filter_id: TextParam) -> Boolean | Awaitable[Boolean]:
    """Removes a filter, including filters of `priv_newFilter`; returns whether the filter existed."""
    is_removed = ctx.filters.uninstall(filter_id)
    if is_removed or ctx.private_filters is None:
        return is_removed
    return _uninstall_private(ctx, filter_id)


async def _uninstall_private(ctx: RpcContext, filter_id: str) -> bool:
    group = await _private_group(ctx, filter_id)
    return group is not None and ctx.private_filters is not None and ctx.private_filters.uninstall(group, filter_id)


async def _private_group(ctx: RpcContext, filter_id: str) -> bytes | None:
    """Return the group of a `priv_newFilter` filter. None if the filter is unknown or belongs to another tenant."""
    group = None if ctx.private_filters is None else ctx.private_filters.group_of(filter_id)
    if group is None or ctx.privacy is None:
        return None
    try:
        await ctx.privacy.enter(group)
    except PrivacyRefused:
        return None
    return group


@method("eth_getFilterChanges", needs={"chain"})
def get_filter_changes(ctx: RpcContext, filter_id: TextParam) -> FilterChangesJson | Awaitable[FilterChangesJson]:
    """Returns what a filter has found since the last call. A filter not polled for ten minutes is removed.

    For an id of `priv_newFilter`, returns the private logs of the filter's group.
    """
    if ctx.private_filters is not None and ctx.private_filters.group_of(filter_id) is not None:
        return _private_changes(ctx, filter_id)
    changes = ctx.filters.changes(filter_id)
    if isinstance(changes, LogChanges):
        return _log_changes(ctx, changes)
    return encode_json([data(found) for found in changes])


async def _private_changes(ctx: RpcContext, filter_id: str) -> bytes:
    group = await _private_group(ctx, filter_id)
    if group is None or ctx.private_filters is None:
        raise FILTER_NOT_FOUND()
    return encode_json(await ctx.private_filters.changes(group, filter_id, ctx.lanes.read))


async def _log_changes(ctx: RpcContext, changes: LogChanges) -> bytes:
    delivered = 0
    try:
        text, delivered = await log_search.changes_of(ctx, changes)
        return text
    finally:
        ctx.filters.delivered(changes, delivered)


@method("eth_getFilterLogs", needs={"chain"})
async def get_filter_logs(ctx: RpcContext, filter_id: TextParam) -> LogsResult:
    """Returns all logs that match a log filter, regardless of earlier polls.

    Empty if the filter starts at the newest block and its `toBlock` has passed. For an id of `priv_newFilter`, returns
    private logs.
    """
    if ctx.private_filters is not None and ctx.private_filters.group_of(filter_id) is not None:
        group = await _private_group(ctx, filter_id)
        if group is None:
            raise LOGS_FILTER_NOT_FOUND()
        # lazy import: only nodes with private transactions need this module
        from ophion.rpc.services import private_logs

        return encode_json(await private_logs.search(ctx, ctx.private_filters.query(group, filter_id)))
    query = ctx.filters.log_query(filter_id)
    return log_search.NOTHING if query.is_passed(ctx.queries.head_number) else await log_search.search(ctx, query)


@method("eth_subscribe", transports={WEBSOCKET})
def subscribe(ctx: RpcContext, caller: Caller, kind: AnyParam = None, options: OptionsParam = None) -> Quantity:
    """Subscribes this connection to notifications; returns the subscription id.

    Kinds: `newHeads`, `logs` (with a filter object), `newPendingTransactions`, `droppedPendingTransactions`, `syncing`,
    `transactionReceipts` (a list for each block; `transactionHashes` selects transactions).
    """
    return ctx.subscriptions.subscribe(cast(Subscriber, caller), kind, options)


@method("eth_unsubscribe", transports={WEBSOCKET})
def unsubscribe(ctx: RpcContext, caller: Caller, subscription: AnyParam = None) -> Boolean:
    """Ends a subscription of this connection."""
    return ctx.subscriptions.unsubscribe(caller, read_id(subscription))
