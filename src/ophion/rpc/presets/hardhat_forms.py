"""Answers in the form of Hardhat's node, for the preset `hardhat`.

Hardhat's node answers true where Anvil answers null, and has error texts of its own. Projects compare both. A method is
wrapped after it is bound: null results of cheat codes become true, and errors get the code, the text and the `data` of
Hardhat's node. An error that Hardhat's node does not have keeps its text.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from ophion.errors import PoolRejected, RpcError
from ophion.native.transactions import Transaction, decode_transactions
from ophion.primitives.hexcodec import data
from ophion.primitives.types import Hash32
from ophion.rpc import errors
from ophion.rpc.schema.method_table import BoundMethod, MethodTable
from ophion.rpc.schema.registry import Invoke
from ophion.rpc.services.call_object import decode_call
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.failed_transaction import raise_if_failed
from ophion.wallet.unsigned_transaction import DYNAMIC_FEE

_CODE: Final = -32000
_CHEAT_CODES: Final = ("hardhat_", "evm_")
_PLAIN: Final = ("from", "to", "data", "input")
_SENDS: Final = frozenset({"eth_sendTransaction", "eth_sendRawTransaction"})
_CALLS: Final = frozenset({"eth_call", "eth_estimateGas"})
_FAULTS: Final[Mapping[str, str]] = {fault.message: reason for reason, fault in errors.POOL_REASONS.items()}
_BOTH_WITH_TIP: Final = "Cannot send both gasPrice and maxPriorityFeePerGas"
_REQUESTS: Final[Mapping[str, str]] = {
    "contract creation without any data provided": "Contract creation without any data provided",
}
"""Texts of Hardhat's node for errors about parameters, by the detail of Ophion's error."""


class Sent(Struct, frozen=True):
    """The fields of a transaction or call that the texts of errors name. A field that is unknown is None."""

    sender: bytes | None = None
    nonce: int | None = None
    gas: int | None = None
    gas_price: int | None = None
    max_fee: int | None = None
    tip: int | None = None
    value: int = 0
    chain_id: int | None = None
    hash: bytes | None = None
    least_gas: Callable[[str], int] | None = None
    """Returns the minimum gas limit under a fork."""


class _Decoded(Struct, frozen=True):
    """Parameters of a method: as the client sent them (`params`, for error texts), and decoded (`values`)."""

    params: Any
    values: Any


def like_hardhat(table: MethodTable, ctx: RpcContext) -> MethodTable:
    """Return a table whose methods answer in the form of Hardhat's node."""
    return table.map(lambda name, bound: _wrapped(name, bound, ctx))


def _wrapped(name: str, bound: BoundMethod, ctx: RpcContext) -> BoundMethod:
    invoke, call, encode = bound.invoke, bound.call, bound.encode
    if name.startswith(_CHEAT_CODES):

        def true_for_null(value: Any) -> bytes:
            text = encode(value)
            return b"true" if text == b"null" else text

        bound = bound._replace(encode=true_for_null)
    if bound.decode is None:
        return bound._replace(invoke=_guarded(invoke, name, ctx), call=_guarded(call, name, ctx), submit=None)
    decode = bound.decode
    if name == "eth_sendRawTransaction":
        invoke, call = _reporting(invoke, encode, ctx), _reporting(call, encode, ctx)

    def checked_decode(params: Sequence[Any]) -> Any:
        try:
            return _Decoded(params, decode(params))
        except Exception as error:  # noqa: BLE001  # the client gets the error
            raise _hardhat_error(error, name, params, ctx) from None

    def checked_call(values: Any, caller: Any) -> Any:
        # values of a raw transaction are no `_Decoded`, because the Rust code decodes them without `checked_decode`
        given = values if isinstance(values, _Decoded) else _Decoded(values, values)
        return _guarded(lambda _, caller: call(given.values, caller), name, ctx)(given.params, caller)

    # without `submit`: the fast path of raw transactions writes its errors itself, not in the form of Hardhat's node
    return bound._replace(invoke=_guarded(invoke, name, ctx), decode=checked_decode, call=checked_call, submit=None)


def _reporting(function: Invoke, encode: Callable[[Any], bytes], ctx: RpcContext) -> Invoke:
    """Return the function, changed to raise an error if the sent transaction is mined and has failed."""

    async def invoke(params: Any, caller: Any) -> Any:
        value = await function(params, caller)
        hash: Hash32 = bytes.fromhex(encode(value).decode().strip('"')[2:])  # a fork's value is encoded already
        await raise_if_failed(ctx, hash)
        return value

    return invoke


def _guarded(function: Invoke, name: str, ctx: RpcContext) -> Invoke:
    """Return the function with the errors of Hardhat's node."""

    def invoke(params: Any, caller: Any) -> Any:
        try:
            value = function(params, caller)
        except Exception as error:  # noqa: BLE001  # the client gets the error
            raise _hardhat_error(error, name, params, ctx) from None
        return _later(value, name, params, ctx) if inspect.isawaitable(value) else value

    return invoke


async def _later(value: Awaitable[Any], name: str, params: Any, ctx: RpcContext) -> Any:
    try:
        return await value
    except Exception as error:  # noqa: BLE001  # the client gets the error
        raise _hardhat_error(error, name, params, ctx) from None


def _hardhat_error(error: Exception, name: str, params: Any, ctx: RpcContext) -> Exception:
    known = errors.as_rpc_error(error)
    if known is None or isinstance(known.data, dict):
        return error
    if known.code == errors.INVALID_PARAMS_CODE and isinstance(known.data, str):
        text = _contradiction_text(known.data, params)
    else:
        reason = error.reason if isinstance(error, PoolRejected) else _FAULTS.get(known.message, known.message)
        text = _broken_rule_text(reason, _fields_of(name, params), ctx) if name in _SENDS or name in _CALLS else None
        if known.message == "unknown account":
            text = _unknown_account(params)
    return error if text is None else RpcError(_CODE, text, {"message": text, "data": None})


def _tip_above_fee(sent: Sent, ctx: RpcContext) -> str | None:
    if sent.gas_price is not None:
        return _BOTH_WITH_TIP
    return (
        None
        if sent.max_fee is None
        else f"maxPriorityFeePerGas ({sent.tip}) is bigger than maxFeePerGas ({sent.max_fee})"
    )


def _contradiction_text(detail: str, params: Any) -> str | None:
    """Return Hardhat's text for a request whose fee fields contradict each other. None if it has no other text."""
    call = params[0] if params and isinstance(params, Sequence) else None
    if isinstance(call, dict) and call.get("gasPrice") is not None:
        if call.get("maxFeePerGas") is not None:
            return "Cannot send both gasPrice and maxFeePerGas params"
        if call.get("maxPriorityFeePerGas") is not None:
            return _BOTH_WITH_TIP
    if isinstance(call, dict) and "< maxPriorityFeePerGas" in detail:
        fee, tip = _number(call.get("maxFeePerGas")), _number(call.get("maxPriorityFeePerGas"))
        return f"maxPriorityFeePerGas ({tip}) is bigger than maxFeePerGas ({fee})"
    return _REQUESTS.get(detail)


def _unknown_account(params: Any) -> str | None:
    for value in params if isinstance(params, Sequence) else ():
        address = value.get("from") if isinstance(value, dict) else value
        if isinstance(address, str) and len(address) == 42:
            return f"Unknown account {address.lower()}"
    return None


def _broken_rule_text(reason: str, sent: Sent, ctx: RpcContext) -> str | None:
    """Return Hardhat's text for a transaction or call that breaks the rule `reason`. None if it has no other text."""
    rule = _RULES.get(reason)
    return None if rule is None else rule(sent, ctx)


def _nonce_too_low(sent: Sent, ctx: RpcContext) -> str | None:
    if sent.sender is None or sent.nonce is None:
        return None
    expected = ctx.queries.head_state.nonce(sent.sender)
    if ctx.dev is not None and ctx.dev.sealer.is_automatic:
        return (
            f"Nonce too low. Expected nonce to be {expected} but got {sent.nonce}. "
            "Note that transactions can't be queued when automining."
        )
    return f"Transaction nonce too low. Expected nonce to be at least {expected} but got {sent.nonce}."


def _too_expensive(sent: Sent, ctx: RpcContext) -> str | None:
    if sent.sender is None:
        return None
    price = sent.max_fee if sent.gas_price is None else sent.gas_price
    gas = ctx.queries.next_block().header.gas_limit if sent.gas is None else sent.gas
    if price is None:
        price = 2 * (ctx.queries.next_base_fee() or 0) + 10**9
    cost, balance = sent.value + gas * price, ctx.queries.head_state.balance(sent.sender)
    return (
        f"Sender doesn't have enough funds to send tx. The max upfront cost is: {cost} "
        f"and the sender's balance is: {balance}."
    )


def _below_base_fee(sent: Sent, ctx: RpcContext) -> str | None:
    named, price = ("maxFeePerGas", sent.max_fee) if sent.gas_price is None else ("gasPrice", sent.gas_price)
    if price is None:
        return None
    return (
        f"Transaction {named} ({price}) is too low for the next block, "
        f"which has a baseFeePerGas of {ctx.queries.next_base_fee()}"
    )


def _above_block(sent: Sent, ctx: RpcContext) -> str | None:
    limit = ctx.queries.next_block().header.gas_limit
    return f"Transaction gas limit is {sent.gas} and exceeds block gas limit of {limit}"


def _intrinsic(sent: Sent, ctx: RpcContext) -> str | None:
    if sent.least_gas is None or sent.gas is None:
        return None
    return f"Transaction requires at least {sent.least_gas(_fork(ctx))} gas but got {sent.gas}"


def _fork(ctx: RpcContext) -> str:
    return ctx.queries.spec.fork_of(ctx.queries.next_block().header).name


_RULES: Final[Mapping[str, Callable[[Sent, RpcContext], str | None]]] = {
    "nonce-too-low": _nonce_too_low,
    "upfront-cost": _too_expensive,
    "base-fee": _below_base_fee,
    "gas-limit": _above_block,
    "intrinsic-gas": _intrinsic,
    "known": lambda sent, ctx: None if sent.hash is None else f"Known transaction: {data(sent.hash)}",
    "wrong-chain-id": lambda sent, ctx: (
        None
        if sent.chain_id is None
        else f"Invalid chainId {sent.chain_id} provided, expected {ctx.queries.spec.chain_id} instead."
    ),
    "tip-above-fee": _tip_above_fee,
}


def _fields_of(name: str, params: Any) -> Sent:
    first = params[0] if params and isinstance(params, Sequence) else None
    if name == "eth_sendRawTransaction":
        return _fields_of_raw(first)
    if not isinstance(first, dict):
        return Sent()
    call = decode_call({key: value for key, value in first.items() if key in _PLAIN})
    plain = Transaction.dynamic_fee(None, bytes(20), 0, 0, 0, call.to, 0, call.input, 0, 0)
    return Sent(
        sender=call.sender,
        nonce=_number(first.get("nonce")),
        gas=_number(first.get("gas")),
        gas_price=_number(first.get("gasPrice")),
        max_fee=_number(first.get("maxFeePerGas")),
        tip=_number(first.get("maxPriorityFeePerGas")),
        value=_number(first.get("value")) or 0,
        chain_id=_number(first.get("chainId")),
        least_gas=None if first.get("accessList") else plain.intrinsic_gas,
    )


def _number(value: Any) -> int | None:
    if type(value) is int:
        return value
    try:
        return int(value, 16) if isinstance(value, str) else None
    except ValueError:
        return None


def _fields_of_raw(raw: Any) -> Sent:
    """Return the fields of an encoded transaction. If it cannot be decoded, all fields are None."""
    try:
        encoded = raw if isinstance(raw, bytes) else bytes.fromhex(raw[2:])
    except (TypeError, ValueError):
        return Sent()
    found = decode_transactions([encoded])[0]
    if isinstance(found, str):
        return Sent()
    has_fees = found.type >= DYNAMIC_FEE
    return Sent(
        sender=found.sender,
        nonce=found.nonce,
        gas=found.gas_limit,
        gas_price=None if has_fees else found.max_fee_per_gas,
        max_fee=found.max_fee_per_gas if has_fees else None,
        tip=found.max_priority_fee_per_gas if has_fees else None,
        value=found.value,
        chain_id=found.chain_id,
        hash=found.hash,
        least_gas=found.intrinsic_gas,
    )
