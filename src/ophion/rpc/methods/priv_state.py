"""priv_*: private states and logs, by group (privacy.md 9, 10)."""

from __future__ import annotations

from typing import Annotated, Any, cast

from ophion.chain.queries import BlockView
from ophion.primitives.types import BlockTag
from ophion.rpc.errors import BLOCK_NOT_FOUND, PRIVACY_OFF, invalid_params
from ophion.rpc.schema.private_types import GroupIdParam
from ophion.rpc.schema.registry import WEBSOCKET, Caller, client_of, method
from ophion.rpc.schema.wire_types import (
    AddressParam,
    BlockId,
    BlockParam,
    Boolean,
    Data,
    HashParam,
    HashResult,
    Quantity,
    Text,
    TextParam,
    WireType,
    encode_json,
)
from ophion.rpc.services import private_logs
from ophion.rpc.services.block_reference import view_at
from ophion.rpc.services.call_execution import run_call
from ophion.rpc.services.call_object import CallParam
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.log_query import LogQueryParam
from ophion.rpc.services.private_access import private
from ophion.rpc.services.private_filters import PrivateFilters
from ophion.rpc.services.private_logs import PrivateSearchParam, of_group
from ophion.rpc.services.private_subscriptions import PrivateSubscriptions
from ophion.rpc.services.subscriptions import AnyParam, OptionsParam, Subscriber, read_id
from ophion.rpc.services.tracing import TraceResult, streamed
from ophion.runtime.eager_coroutine import awaited

PrivateLogsJson = Annotated[
    list[dict[str, Any]], WireType("logs", "logs of private transactions", {"type": "array"}, encode=encode_json)
]


async def _view(ctx: RpcContext, block: BlockId) -> BlockView:
    """Return the block of a request, with its state. `pending` means the head, because the pending block has no private
    state.
    """
    await private(ctx).settled()
    view = view_at(ctx, BlockTag.LATEST if block is BlockTag.PENDING else block)
    if view is None:
        raise BLOCK_NOT_FOUND()
    return view


@method("priv_call", needs={"privacy"}, without=PRIVACY_OFF)
async def priv_call(ctx: RpcContext, group: GroupIdParam, call: CallParam, block: BlockParam = BlockTag.LATEST) -> Data:
    """Executes a call on the state of a group after a block and returns its result, without any change.

    `to` is required. A revert is error 3 with the revert data.
    """
    if call.to is None:
        raise invalid_params("to: missing")
    view = await _view(ctx, block)
    state = await private(ctx).state(group, view)
    return await awaited(run_call(ctx, state, view.free_env, view.header.gas_limit, call, None))


@method("priv_getCode", needs={"privacy"}, without=PRIVACY_OFF)
async def get_code(
    ctx: RpcContext, group: GroupIdParam, address: AddressParam, block: BlockParam = BlockTag.LATEST
) -> Data:
    """Returns the code of a contract in the state of a group after a block."""
    view = await _view(ctx, block)
    return (await private(ctx).state(group, view)).code(address)


@method("priv_debugGetStateRoot", needs={"privacy"}, without=PRIVACY_OFF)
async def get_state_root(ctx: RpcContext, group: GroupIdParam, block: BlockParam = BlockTag.LATEST) -> HashResult:
    """Returns the root of a group's state after a block. Members with the same state have the same root."""
    return await private(ctx).root(group, (await _view(ctx, block)).header.number)


@method("priv_traceTransaction", needs={"privacy"}, without=PRIVACY_OFF)
async def trace_transaction(ctx: RpcContext, hash: HashParam) -> TraceResult | None:
    """Returns the flat trace of a private transaction by the hash of its privacy marker transaction.

    Null if this node has no receipt of the private transaction.
    """
    privacy = private(ctx)
    found = await privacy.receipt(hash)
    if found is None:
        return None
    record, place = found
    return await streamed(ctx, await privacy.executor.trace(place, record.group, ctx.limits.timeout_s))


# --- logs ----------------------------------------------------------------------------------------


def _filters(ctx: RpcContext) -> PrivateFilters:
    assert ctx.private_filters is not None
    return ctx.private_filters


def _subscriptions(ctx: RpcContext) -> PrivateSubscriptions:
    assert ctx.private_subscriptions is not None
    return ctx.private_subscriptions


@method("priv_getLogs", needs={"privacy"}, without=PRIVACY_OFF)
async def get_logs(ctx: RpcContext, group: GroupIdParam, filter: PrivateSearchParam) -> PrivateLogsJson:
    """Returns logs of a group's private transactions in a range of blocks; the default range is all blocks."""
    await private(ctx).enter(group)
    return await private_logs.search(ctx, of_group(filter, group))


@method("priv_newFilter", needs={"privacy"}, without=PRIVACY_OFF)
async def new_filter(ctx: RpcContext, caller: Caller, group: GroupIdParam, filter: LogQueryParam) -> Text:
    """Installs a filter for new logs of a group; returns its id."""
    await private(ctx).enter(group)
    return _filters(ctx).install(group, filter, client_of(caller))


@method("priv_uninstallFilter", needs={"privacy"}, without=PRIVACY_OFF)
async def uninstall_filter(ctx: RpcContext, group: GroupIdParam, filter_id: TextParam) -> Boolean:
    """Removes a filter of a group; returns whether the filter existed."""
    await private(ctx).tenants.authorize(group)
    return _filters(ctx).uninstall(group, filter_id)


@method("priv_getFilterChanges", needs={"privacy"}, without=PRIVACY_OFF)
async def get_filter_changes(ctx: RpcContext, group: GroupIdParam, filter_id: TextParam) -> PrivateLogsJson:
    """Returns the logs that a filter has found since the last poll."""
    await private(ctx).enter(group)
    return await _filters(ctx).changes(group, filter_id, ctx.lanes.read)


@method("priv_getFilterLogs", needs={"privacy"}, without=PRIVACY_OFF)
async def get_filter_logs(ctx: RpcContext, group: GroupIdParam, filter_id: TextParam) -> PrivateLogsJson:
    """Returns every log that matches a filter's range, addresses and topics, including logs returned before."""
    await private(ctx).enter(group)
    return await private_logs.search(ctx, _filters(ctx).query(group, filter_id))


@method("priv_subscribe", needs={"privacy"}, transports={WEBSOCKET}, without=PRIVACY_OFF)
async def subscribe(
    ctx: RpcContext, caller: Caller, group: GroupIdParam, kind: AnyParam = None, options: OptionsParam = None
) -> Quantity:
    """Subscribes this connection to the logs of a group; returns the subscription id. The only kind is `logs`."""
    await private(ctx).tenants.authorize(group)
    return _subscriptions(ctx).subscribe(cast(Subscriber, caller), group, kind, options)


@method("priv_unsubscribe", needs={"privacy"}, transports={WEBSOCKET}, without=PRIVACY_OFF)
async def unsubscribe(ctx: RpcContext, caller: Caller, group: GroupIdParam, subscription: AnyParam = None) -> Boolean:
    """Ends a subscription of this connection; returns true, or an error when the subscription does not exist."""
    await private(ctx).tenants.authorize(group)
    return _subscriptions(ctx).unsubscribe(caller, group, read_id(subscription))
