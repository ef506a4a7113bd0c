"""Fills in the fields that a transaction request omits: nonce, gas, fees and type.

`eth_fillTransaction` returns the result, `eth_signTransaction` signs it and `eth_sendTransaction` sends it. A request
is a call object with an optional type (json-rpc.md 3.4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Final

from msgspec import Struct

from ophion.chainspec.forks import Fork, Milestone
from ophion.primitives.types import Address
from ophion.rpc.errors import TIP_ABOVE_FEE, invalid_params
from ophion.rpc.schema.wire_types import WireType, decode_quantity
from ophion.rpc.services.call_execution import check_chain, run_estimate
from ophion.rpc.services.call_object import CALL_SCHEMA, Call, decode_call
from ophion.rpc.services.context import RpcContext
from ophion.wallet.unsigned_transaction import ACCESS_LIST, BLOB, DYNAMIC_FEE, LEGACY, SET_CODE, UnsignedTransaction

_MAX_FEE: Final = 2**128 - 1
_BASE_FEE_HEADROOM: Final = 2
"""A filled-in maximum fee covers base fees of up to this multiple of the current base fee."""


class TransactionRequest(Struct, frozen=True):
    """A transaction request. Most of its fields are optional."""

    call: Call
    type: int | None

    @property
    def sender(self) -> Address:
        if self.call.sender is None:
            raise invalid_params("from: missing")
        return self.call.sender


def decode_transaction_request(value: object) -> TransactionRequest:
    """Decode a call object with an optional transaction type."""
    call = decode_call(value)
    assert isinstance(value, dict)
    kind = value.get("type")
    request = TransactionRequest(call, None if kind is None else decode_quantity(kind))
    _check_parts(request)
    return request


def _check_parts(request: TransactionRequest) -> None:
    call, kind = request.call, request.type
    has_new_fees = call.max_fee_per_gas is not None or call.max_priority_fee_per_gas is not None
    if call.gas_price is not None and has_new_fees:
        raise invalid_params("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
    if kind is None:
        return
    if kind > SET_CODE:
        raise invalid_params(f"type: there is no transaction type {kind}")
    excluded = (
        (kind >= DYNAMIC_FEE and call.gas_price is not None, "gasPrice"),
        (kind < DYNAMIC_FEE and has_new_fees, "maxFeePerGas and maxPriorityFeePerGas"),
        (kind == LEGACY and bool(call.access_list), "accessList"),
        (kind != BLOB and bool(call.blob_hashes), "blobVersionedHashes"),
        (kind != SET_CODE and bool(call.authorizations), "authorizationList"),
    )
    for is_wrong, name in excluded:
        if is_wrong:
            raise invalid_params(f"transactions of type {kind} have no {name}")


async def filled(ctx: RpcContext, request: TransactionRequest, takes_failing: bool = False) -> UnsignedTransaction:
    """Return the complete transaction. If the request has no gas limit, the gas is estimated.

    The estimate raises `RpcError` if the transaction would fail. With `takes_failing`, a transaction that would fail
    gets the gas limit of the block instead.
    """
    call = request.call
    if call.to is None and not call.input and not ctx.is_anvil:
        raise invalid_params("contract creation without any data provided")
    check_chain(ctx, call)
    kind = _type(ctx, request)
    prices = await (_gas_price(ctx, call) if kind < DYNAMIC_FEE else _fees(ctx, call, kind))
    gas, nonce = call.gas, call.nonce
    if gas is None:
        following = ctx.queries.next_block()
        priced = replace(call, nonce=None, **prices)
        state, gas_limit = ctx.queries.head_state, following.header.gas_limit
        gas_of_failing = gas_limit if takes_failing else None
        gas = await run_estimate(ctx, state, following.env, gas_limit, priced, None, gas_of_failing, is_sent=True)
    # signatures with a chain id are invalid before Spurious Dragon
    names_chain = kind != LEGACY or _next_fork(ctx).has(Milestone.SPURIOUS)
    return UnsignedTransaction(
        type=kind,
        chain_id=ctx.queries.spec.chain_id if names_chain else None,
        nonce=next_nonce(ctx, call.sender or bytes(20)) if nonce is None else nonce,
        gas=gas,
        to=call.to,
        value=call.value,
        input=call.input,
        access_list=call.access_list,
        blob_hashes=call.blob_hashes,
        authorizations=call.authorizations,
        **prices,
    )


def next_nonce(ctx: RpcContext, sender: Address) -> int:
    """Return the next nonce of an account, after its mined and pooled transactions."""
    return max(ctx.queries.head_state.nonce(sender), ctx.pool.next_nonce(sender) or 0)


def _type(ctx: RpcContext, request: TransactionRequest) -> int:
    """Return the requested type, else the type that other fields require, else the default type of the next block."""
    call = request.call
    if request.type is not None:
        return request.type
    if call.authorizations:
        return SET_CODE
    if call.blob_hashes:
        return BLOB
    has_base_fee = _next_fork(ctx).has(Milestone.LONDON)
    if call.gas_price is None and has_base_fee:
        return DYNAMIC_FEE
    if call.max_fee_per_gas is not None or call.max_priority_fee_per_gas is not None:
        raise invalid_params("maxFeePerGas and maxPriorityFeePerGas are not valid before London")
    return ACCESS_LIST if call.access_list else LEGACY


def _next_fork(ctx: RpcContext) -> Fork:
    return ctx.queries.spec.fork_of(ctx.queries.next_block().header)


async def _gas_price(ctx: RpcContext, call: Call) -> dict[str, Any]:
    return {"gas_price": await ctx.fees.gas_price() if call.gas_price is None else call.gas_price}


async def _fees(ctx: RpcContext, call: Call, kind: int) -> dict[str, Any]:
    fee, tip = call.max_fee_per_gas, call.max_priority_fee_per_gas
    if tip is None:
        tip = await ctx.fees.max_priority_fee()
        tip = tip if fee is None else min(tip, fee)
    if fee is None:
        fee = min(tip + _BASE_FEE_HEADROOM * (ctx.queries.next_base_fee() or 0), _MAX_FEE)
    if tip > fee:
        detail = f"maxFeePerGas ({fee}) < maxPriorityFeePerGas ({tip})"
        raise TIP_ABOVE_FEE(detail) if ctx.is_anvil else invalid_params(detail)
    prices: dict[str, Any] = {"max_fee_per_gas": fee, "max_priority_fee_per_gas": tip}
    if kind == BLOB:
        blob_fee = call.max_fee_per_blob_gas
        suggested = _BASE_FEE_HEADROOM * (ctx.queries.next_blob_base_fee() or 1)
        prices["max_fee_per_blob_gas"] = suggested if blob_fee is None else blob_fee
    return prices


_SCHEMA: Final[dict[str, Any]] = {
    **CALL_SCHEMA,
    "properties": {
        **CALL_SCHEMA["properties"],
        "type": {"type": "string", "description": "transaction type; by default derived from the members"},
    },
}
TransactionRequestParam = Annotated[
    TransactionRequest, WireType("transaction", "transaction object", _SCHEMA, decode_transaction_request)
]
UnreadRequestParam = Annotated[Any, WireType("transaction", "transaction object", _SCHEMA, lambda value: value)]
"""An undecoded request. A node without keys refuses every `eth_sendTransaction` without decoding the request."""
