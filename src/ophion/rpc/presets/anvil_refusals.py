"""Requests that only a node with a preset refuses, as Anvil does: short addresses, and states of unknown blocks.

The interface of Pantheon 1.2 pads short addresses and answers null for an unknown block. Anvil, Hardhat's node and geth
refuse both. A node with a preset checks the addresses before a request is decoded, and the result after the request has
run. The error texts are Anvil's; for unknown blocks, the preset `hardhat` has the error of Hardhat's node.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ophion.errors import RpcError
from ophion.rpc.schema.method_table import BoundMethod, MethodTable
from ophion.rpc.schema.registry import Invoke
from ophion.rpc.services.context import RpcContext

_INVALID: Final = -32602
_NOT_FOUND: Final = -32001
_HARDHAT_INVALID: Final = -32000
_DIGITS: Final = 40

_STATES: Final = {
    "eth_getBalance": 1,
    "eth_getCode": 1,
    "eth_getTransactionCount": 1,
    "eth_getStorageAt": 2,
    "eth_getProof": 2,
    "eth_call": 1,
}
"""Methods about the state of an account, with the position of the block. Their result is never null in Anvil."""

SENDS: Final = frozenset(
    {
        "eth_sendTransaction",
        "eth_sendTransactionSync",
        "eth_sendUnsignedTransaction",
        "eth_signTransaction",
        "eth_fillTransaction",
    }
)
"""Methods whose first parameter is a transaction request."""
CALLS: Final = SENDS | {"eth_call", "eth_estimateGas", "eth_createAccessList", "debug_traceCall"}
"""Methods whose first parameter is a call object."""
_FILTERS: Final = frozenset({"eth_getLogs", "eth_newFilter"})
_ACCOUNTS: Final = frozenset(("eth_getAccount", "eth_getAccountInfo"))
_EDITS: Final = frozenset(
    f"{group}_{edit}"
    for group in ("anvil", "hardhat")
    for edit in (
        "addBalance",
        "impersonateAccount",
        "removePoolTransactions",
        "setBalance",
        "setCode",
        "setCoinbase",
        "setNonce",
        "setStorageAt",
        "stopImpersonatingAccount",
    )
) | {"evm_setAccountNonce", "tenderly_addBalance", "tenderly_setBalance"}


def with_refusals(table: MethodTable, ctx: RpcContext) -> MethodTable:
    """Return a table whose methods refuse what the node of the preset refuses."""
    return table.map(lambda name, bound: _wrapped(name, bound, ctx))


def _wrapped(name: str, bound: BoundMethod, ctx: RpcContext) -> BoundMethod:
    addresses = _addresses_of(name)
    if addresses is None:
        return bound
    invoke, decode, call = bound.invoke, bound.decode, bound.call
    place = _STATES.get(name)

    def checked_decode(params: Sequence[Any]) -> Any:
        _check(addresses(params))
        assert decode is not None
        return decode(params)

    def checked_invoke(params: Sequence[Any], caller: Any) -> Any:
        _check(addresses(params))
        return invoke(params, caller)

    return bound._replace(
        invoke=checked_invoke if place is None else _found(checked_invoke, place, ctx),
        decode=None if decode is None else checked_decode,
        call=call if place is None else _found(call, place, ctx),
    )


def _found(function: Invoke, place: int, ctx: RpcContext) -> Invoke:
    """Return the function with an error in place of a null result."""

    async def later(value: Any, params: Any) -> Any:
        found = await value
        return _missing(params) if found is None else found

    def _missing(params: Any) -> Any:
        block = params[place] if isinstance(params, Sequence) and len(params) > place else None
        raise _unknown_block(ctx, block)

    def invoke(params: Any, caller: Any) -> Any:
        value = function(params, caller)
        if inspect.isawaitable(value):
            return later(value, params)
        return _missing(params) if value is None else value

    return invoke


def _unknown_block(ctx: RpcContext, block: Any) -> RpcError:
    if isinstance(block, dict):
        block = block.get("blockNumber")
    if isinstance(block, str):
        try:
            block = int(block, 16)
        except ValueError:
            block = None
    head = ctx.queries.head_number
    if ctx.dev is not None and ctx.dev.identity.preset == "hardhat":
        named = "hash" if block is None else f"tag {block}"
        return RpcError(_HARDHAT_INVALID, f"Received invalid block {named}. Latest block number is {head}")
    if type(block) is int and head < block < 1 << 64:
        return RpcError(_INVALID, f"BlockOutOfRangeError: block height is {head} but requested was {block}")
    return RpcError(_NOT_FOUND, "Resource not found")


def _addresses_of(name: str) -> Callable[[Sequence[Any]], Iterator[Any]] | None:
    """Return a function that yields the addresses in a method's parameters; None for a method without addresses."""
    if name == "debug_traceCall":
        return _traced_addresses
    if name in CALLS:
        return _call_addresses
    if name in _FILTERS:
        return _filter_addresses
    is_first = name in _STATES or name in _ACCOUNTS or name in _EDITS
    return _first if is_first else None


def _first(params: Sequence[Any]) -> Iterator[Any]:
    yield from params[:1]


def _call_addresses(params: Sequence[Any]) -> Iterator[Any]:
    """Yield the addresses of a call object, and those of the state overrides behind the block."""
    yield from _object_addresses(params)
    yield from _override_addresses(params[2] if len(params) > 2 else None)


def _traced_addresses(params: Sequence[Any]) -> Iterator[Any]:
    """Yield the addresses of `debug_traceCall`, whose state overrides are in the options of the trace."""
    yield from _object_addresses(params)
    options = params[2] if len(params) > 2 else None
    yield from _override_addresses(options.get("stateOverrides") if isinstance(options, dict) else None)


def _override_addresses(overrides: Any) -> Iterator[Any]:
    if isinstance(overrides, dict) and all(isinstance(one, dict) for one in overrides.values()):
        yield from overrides


def _object_addresses(params: Sequence[Any]) -> Iterator[Any]:
    call = params[0] if params else None
    if not isinstance(call, dict):
        return
    yield call.get("from")
    yield call.get("to")
    entries = call.get("accessList")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            yield entry.get("address")


def _filter_addresses(params: Sequence[Any]) -> Iterator[Any]:
    wanted = params[0].get("address") if params and isinstance(params[0], dict) else None
    yield from wanted if isinstance(wanted, list) else (wanted,)


def _check(addresses: Iterator[Any]) -> None:
    """Raise the error of Anvil for text that is not as long as an address. Other mistakes have errors of their own."""
    for address in addresses:
        if not isinstance(address, str):
            continue
        digits = len(address) - 2 * address.startswith("0x")
        if digits != _DIGITS:
            raise RpcError(_INVALID, "odd number of digits" if digits % 2 else "invalid string length")
