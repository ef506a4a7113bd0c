"""Requests that only a node with a preset refuses, as Anvil does: short addresses, and unknown blocks.

The interface of Pantheon 1.2 pads short addresses and answers null for an unknown block. Anvil, Hardhat's node and geth
refuse both. A node with a preset checks the addresses before a request is decoded, and the result after the request has
run. The error texts are Anvil's; for unknown blocks, the preset `hardhat` has the error of Hardhat's node.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from ophion.errors import RpcError
from ophion.primitives.hexcodec import data
from ophion.primitives.types import BlockTag
from ophion.rpc.errors import BLOCK_NOT_FOUND
from ophion.rpc.schema.method_table import BoundMethod, MethodTable
from ophion.rpc.schema.registry import Invoke
from ophion.rpc.schema.wire_types import CanonicalHash, decode_block
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.fork_requests import is_null

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
"""Methods about the state of an account, with the position of the block. Null means an unknown block."""
_OTHER_STATES: Final = {
    "eth_estimateGas": 1,
    "eth_createAccessList": 1,
    "debug_traceCall": 1,
    "eth_getAccount": 1,
    "eth_getAccountInfo": 1,
    "eth_simulateV1": 1,
}
"""Methods with the position of the block that raise an error for an unknown block without a preset as well."""
_ANVIL_BLOCKS: Final = {
    "eth_getBlockTransactionCountByNumber": True,
    "eth_getUncleCountByBlockNumber": False,
    "eth_getUncleCountByBlockHash": False,
    "debug_traceBlockByNumber": False,
    "debug_traceBlockByHash": False,
}
"""Methods whose first parameter is a block, and whose result is null for an unknown block, except in Anvil. The value
says whether Anvil's error names the number of the block.
"""

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
    if name in _STATES or name in _OTHER_STATES:
        bound = _with_known_block(bound, ctx, _STATES.get(name) or _OTHER_STATES[name], is_null_unknown=name in _STATES)
    elif ctx.is_anvil and name in _ANVIL_BLOCKS:
        bound = _with_known_block(bound, ctx, 0 if _ANVIL_BLOCKS[name] else None, is_null_unknown=True)
    checks = [check for check in (_address_check(name), _range_check(name, ctx) if ctx.is_anvil else None) if check]
    if not checks:
        return bound
    invoke, decode = bound.invoke, bound.decode

    def checked_decode(params: Sequence[Any]) -> Any:
        for check in checks:
            check(params)
        assert decode is not None
        return decode(params)

    def checked_invoke(params: Sequence[Any], caller: Any) -> Any:
        for check in checks:
            check(params)
        return invoke(params, caller)

    return bound._replace(invoke=checked_invoke, decode=None if decode is None else checked_decode)


def _with_known_block(bound: BoundMethod, ctx: RpcContext, place: int | None, is_null_unknown: bool) -> BoundMethod:
    """Return the method with the preset's error for an unknown block. `place` is the position of the block in the
    parameters; without it, the error names no block.
    """

    def wrapped(function: Invoke) -> Invoke:
        async def later(value: Any, params: Any) -> Any:
            try:
                return checked(await value, params)
            except RpcError as error:
                raise _preset_error(error, params) from None

        def checked(value: Any, params: Any) -> Any:
            if is_null_unknown and is_null(value):
                raise _unknown_block(ctx, _block_in(params))
            return value

        def invoke(params: Any, caller: Any) -> Any:
            try:
                value = function(params, caller)
                return later(value, params) if inspect.isawaitable(value) else checked(value, params)
            except RpcError as error:
                raise _preset_error(error, params) from None

        return invoke

    def _block_in(params: Any) -> Any:
        if place is None or not isinstance(params, Sequence) or len(params) <= place:
            return None
        return params[place]

    def _preset_error(error: RpcError, params: Any) -> RpcError:
        # a forked node passes on errors of its source, which reports an unknown block with `_NOT_FOUND`
        is_unknown = error.code == _NOT_FOUND or error.message == BLOCK_NOT_FOUND.message
        return _unknown_block(ctx, _block_in(params)) if is_unknown else error

    return bound._replace(invoke=wrapped(bound.invoke), call=wrapped(bound.call))


def _unknown_block(ctx: RpcContext, block: Any) -> RpcError:
    """Return the preset's error for an unknown block. `block` is the parameter, before or after it was decoded."""
    head, named = ctx.queries.head_number, _named(block)
    if ctx.is_hardhat:
        return RpcError(_HARDHAT_INVALID, f"Received invalid block tag {named}. Latest block number is {head}")
    if isinstance(named, int) and named > head:
        return RpcError(_INVALID, f"BlockOutOfRangeError: block height is {head} but requested was {named}")
    return RpcError(_NOT_FOUND, "Resource not found")


def _named(block: Any) -> int | str:
    """Return the number of a block parameter, or the hash or tag as text; `latest` if it has another form."""
    if isinstance(block, (str, dict)):
        try:
            block = decode_block(block)
        except RpcError:
            block = BlockTag.LATEST
    if isinstance(block, CanonicalHash):
        block = block.hash
    if isinstance(block, bytes):
        return data(block)
    return block if isinstance(block, int) else (block if isinstance(block, BlockTag) else BlockTag.LATEST).value


def _range_check(name: str, ctx: RpcContext) -> Callable[[Sequence[Any]], None] | None:
    """Return a check that raises Anvil's error for logs from a block above the head."""
    if name != "eth_getLogs":
        return None

    def check(params: Sequence[Any]) -> None:
        first = params[0].get("fromBlock") if params and isinstance(params[0], dict) else None
        named = _named(first)
        if isinstance(named, int) and named > ctx.queries.head_number:
            raise _unknown_block(ctx, named)

    return check


def _address_check(name: str) -> Callable[[Sequence[Any]], None] | None:
    """Return a check of the addresses in a method's parameters; None for a method without addresses."""
    addresses = _addresses_of(name)
    return None if addresses is None else lambda params: _check(addresses(params))


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
    """Yield the addresses in a call object, and in the state overrides after the block parameter."""
    yield from _object_addresses(params)
    yield from _override_addresses(params[2] if len(params) > 2 else None)


def _traced_addresses(params: Sequence[Any]) -> Iterator[Any]:
    """Yield the addresses in the parameters of `debug_traceCall`. Its state overrides are in the trace options."""
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
