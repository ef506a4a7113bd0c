"""txpool_*: pending transactions (json-rpc.md 5.12, 7.1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import orjson

from ophion.pool.queue import PooledTransaction
from ophion.primitives.hexcodec import quantity
from ophion.primitives.types import Address
from ophion.rpc.errors import invalid_params
from ophion.rpc.schema import render
from ophion.rpc.schema.registry import Example, method
from ophion.rpc.schema.schemas import (
    PENDING_LIST,
    PoolContentResult,
    PoolEntriesResult,
    PoolStatisticsResult,
    PoolStatusResult,
    PoolTextResult,
    SenderContentResult,
)
from ophion.rpc.schema.wire_types import AddressParam, IntegerParam, WireType, decode_address, decode_gas
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.pool_listing import listed, rendered
from ophion.rpc.transport.streaming import StreamedResult

Show = Callable[[PooledTransaction], Any]
Condition = Callable[[PooledTransaction], bool]


@method(
    "txpool_clientStatistics", aliases=["txpool_besuStatistics", "txpool_pantheonStatistics"], needs={"pool"},
    examples=[Example([], {"maxSize": 4096, "localCount": 0, "remoteCount": 0})],
)  # fmt: skip
def statistics(ctx: RpcContext) -> PoolStatisticsResult:
    """Returns the maximum size of the pool, and its number of local and remote transactions."""
    figures = ctx.pool.statistics()
    return {"maxSize": figures.max_size, "localCount": figures.local_count, "remoteCount": figures.remote_count}


@method(
    "txpool_clientTransactions", aliases=["txpool_besuTransactions", "txpool_pantheonTransactions"], needs={"pool"},
    examples=[Example([], [])],
)  # fmt: skip
async def transactions(ctx: RpcContext) -> PoolEntriesResult:
    """Returns all pooled transactions with origin and time of arrival."""
    items = ctx.pool.transactions()
    return await rendered(ctx, items, lambda: [render.pool_entry(item) for item in items])


@method("txpool_status", needs={"pool"}, examples=[Example([], {"pending": "0x0", "queued": "0x0"})])
def status(ctx: RpcContext) -> PoolStatusResult:
    """Returns the number of executable transactions, and the number of transactions queued behind a missing nonce."""
    pending, queued = ctx.pool.counts()
    return {"pending": quantity(pending), "queued": quantity(queued)}


@method("txpool_content", needs={"pool"}, examples=[Example([], {"pending": {}, "queued": {}})])
async def content(ctx: RpcContext) -> PoolContentResult:
    """Returns all pooled transactions by sender and nonce."""
    return await _content(ctx, _object)


@method("txpool_inspect", needs={"pool"}, examples=[Example([], {"pending": {}, "queued": {}})])
async def inspect(ctx: RpcContext) -> PoolTextResult:
    """Returns all pooled transactions by sender and nonce, each as a line of text."""
    return await _content(ctx, lambda item: render.pool_summary(item.transaction))


@method(
    "txpool_contentFrom",
    needs={"pool"},
    examples=[Example(["0xa94f5374fce5edbc8e2a8697c15331677e6ebf0b"], {"pending": {}, "queued": {}})],
)
async def content_from(ctx: RpcContext, sender: AddressParam) -> SenderContentResult:
    """Returns the pooled transactions of one sender by nonce."""
    found = ctx.pool.content(sender)
    pending, queued = found.pending.get(sender, {}), found.queued.get(sender, {})
    items = [*pending.values(), *queued.values()]
    return await rendered(
        ctx, items, lambda: {"pending": _by_nonce(pending, _object), "queued": _by_nonce(queued, _object)}
    )


async def _content(ctx: RpcContext, show: Show) -> dict[str, Any]:
    found, items = ctx.pool.content(), ctx.pool.transactions()
    return await rendered(
        ctx, items, lambda: {"pending": _by_sender(found.pending, show), "queued": _by_sender(found.queued, show)}
    )


def _by_sender(senders: Mapping[Address, Mapping[int, PooledTransaction]], show: Show) -> dict[str, Any]:
    return {render.checksum_address(sender): _by_nonce(items, show) for sender, items in senders.items()}


def _by_nonce(items: Mapping[int, PooledTransaction], show: Show) -> dict[str, Any]:
    return {str(nonce): show(item) for nonce, item in items.items()}


def _object(item: PooledTransaction) -> orjson.Fragment:
    return orjson.Fragment(item.transaction.json())


# --- filtered list -------------------------------------------------------------------------------

_NUMBERS: Final[Mapping[str, Callable[[PooledTransaction], int]]] = {
    "gas": lambda item: item.gas_limit,
    "gasPrice": lambda item: item.max_fee,
    "value": lambda item: item.transaction.value,
    "nonce": lambda item: item.nonce,
}
_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "eq": lambda left, right: left == right,
    "gt": lambda left, right: left > right,
    "lt": lambda left, right: left < right,
}


def _decode_conditions(value: object) -> list[Condition]:
    """Decode `{"from": {"eq": ...}, "gas": {"gt": ...}}`: one comparison per key; all must hold."""
    if type(value) is not dict:
        raise invalid_params("filter: an object is expected")
    return [_condition(name, comparison) for name, comparison in value.items()]


def _condition(name: str, comparison: object) -> Condition:
    if type(comparison) is not dict or len(comparison) != 1:
        raise invalid_params(f"filter: {name} needs exactly one of eq, gt and lt")
    ((operator, operand),) = comparison.items()
    if name == "from" and operator == "eq":
        sender = decode_address(operand)
        return lambda item: item.sender == sender
    if name == "to" and operator in ("eq", "action"):
        recipient = None if operand == "contract_creation" else decode_address(operand)
        return lambda item: item.transaction.to == recipient
    if name not in _NUMBERS or operator not in _COMPARISONS:
        raise invalid_params(f"filter: {name} cannot be compared with {operator}")
    read, compare, wanted = _NUMBERS[name], _COMPARISONS[operator], decode_gas(operand)
    return lambda item: compare(read(item), wanted)


ConditionsParam = Annotated[
    list[Condition],
    WireType(
        "conditions",
        "eq, gt or lt for from, to, gas, gasPrice, value and nonce",
        {"type": "object", "additionalProperties": {"type": "object"}},
        _decode_conditions,
    ),
]


@method("txpool_besuPendingTransactions", needs={"pool"}, examples=[Example([], [])])
async def pending_transactions(
    ctx: RpcContext, limit: IntegerParam | None = None, filter: ConditionsParam | None = None
) -> Annotated[bytes | StreamedResult, PENDING_LIST]:
    """Returns the pooled transactions that match a filter, or the first `limit` of them."""
    found = [item for item in ctx.pool.transactions() if all(holds(item) for holds in filter or ())]
    return await listed(ctx, found if limit is None else found[: max(0, limit)])
