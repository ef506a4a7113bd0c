"""eth_*: logs, polling filters and subscriptions (json-rpc.md 5.6, 1.10)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import cast

from ophion.primitives.hexcodec import data
from ophion.rpc.schema.registry import WEBSOCKET, Caller, Example, client_of, method
from ophion.rpc.schema.schemas import FilterChangesJson, LogsJson
from ophion.rpc.schema.wire_types import Boolean, Quantity, Text, TextParam, encode_json
from ophion.rpc.services import log_search
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.filters import FilterKind, LogChanges
from ophion.rpc.services.log_query import LogQueryParam, LogSearchParam
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
async def get_logs(ctx: RpcContext, filter: LogSearchParam) -> LogsJson:
    """Logs of a range of blocks, or of one block by its hash, that match addresses and topics.

    A range that reaches beyond the newest block ends there; one that goes backwards and an unknown hash are errors.
    """
    return await log_search.search(ctx, filter)


@method("eth_newFilter", needs={"chain"})
def new_filter(ctx: RpcContext, caller: Caller, filter: LogQueryParam) -> Text:
    """Install a filter for logs of blocks that arrive from now on; its id."""
    return ctx.filters.install(FilterKind.LOGS, filter, client_of(caller))


@method("eth_newBlockFilter", needs={"chain"})
def new_block_filter(ctx: RpcContext, caller: Caller) -> Text:
    """Install a filter for hashes of blocks that arrive from now on; its id."""
    return ctx.filters.install(FilterKind.BLOCKS, client=client_of(caller))


@method("eth_newPendingTransactionFilter", needs={"pool"})
def new_pending_transaction_filter(ctx: RpcContext, caller: Caller) -> Text:
    """Install a filter for hashes of transactions that enter the pool from now on; its id."""
    return ctx.filters.install(FilterKind.PENDING, client=client_of(caller))


@method("eth_uninstallFilter", examples=[Example(["0x31"], False)])
def uninstall_filter(ctx: RpcContext, filter_id: TextParam) -> Boolean:
    """Remove a filter; whether there was one."""
    return ctx.filters.uninstall(filter_id)


@method("eth_getFilterChanges", needs={"chain"})
def get_filter_changes(ctx: RpcContext, filter_id: TextParam) -> FilterChangesJson | Awaitable[FilterChangesJson]:
    """What a filter has found since it was last asked. Filters nobody asks for ten minutes are removed."""
    changes = ctx.filters.changes(filter_id)
    if isinstance(changes, LogChanges):
        return _log_changes(ctx, changes)
    return encode_json([data(found) for found in changes])


async def _log_changes(ctx: RpcContext, changes: LogChanges) -> bytes:
    delivered = 0
    try:
        text, delivered = await log_search.changes_of(ctx, changes)
        return text
    finally:
        ctx.filters.delivered(changes, delivered)


@method("eth_getFilterLogs", needs={"chain"})
async def get_filter_logs(ctx: RpcContext, filter_id: TextParam) -> LogsJson:
    """Every log that a log filter's range, addresses and topics match, asked before or not.

    A filter from the newest block to one that the chain has passed since has none left.
    """
    query = ctx.filters.log_query(filter_id)
    return log_search.NOTHING if query.is_passed(ctx.queries.head_number) else await log_search.search(ctx, query)


@method("eth_subscribe", transports={WEBSOCKET})
def subscribe(ctx: RpcContext, caller: Caller, kind: AnyParam = None, options: OptionsParam = None) -> Quantity:
    """Be told of new things on this connection; the id of the subscription.

    Kinds: `newHeads`, `logs` (with a filter object), `newPendingTransactions`, `droppedPendingTransactions`, `syncing`,
    `transactionReceipts` (for each block a list; `transactionHashes` names those that are wanted).
    """
    return ctx.subscriptions.subscribe(cast(Subscriber, caller), kind, options)


@method("eth_unsubscribe", transports={WEBSOCKET})
def unsubscribe(ctx: RpcContext, caller: Caller, subscription: AnyParam = None) -> Boolean:
    """End a subscription of this connection."""
    return ctx.subscriptions.unsubscribe(caller, read_id(subscription))
