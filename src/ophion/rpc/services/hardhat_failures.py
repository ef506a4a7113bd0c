"""The errors of Hardhat's node for failed transactions and calls."""

from __future__ import annotations

from typing import Final

from ophion.errors import RpcError
from ophion.primitives.hexcodec import data
from ophion.primitives.revert_reason import panic_code, revert_reason
from ophion.rpc.errors import INTERNAL_ERROR_CODE, REVERTED_CODE, SERVER_ERROR_CODE
from ophion.rpc.services.context import RpcContext

_EXCEPTION: Final = "Error: VM Exception while processing transaction: "
_NO_REASON: Final = "Error: Transaction reverted without a reason string"
_NO_GAS: Final = "Transaction ran out of gas"
_OUT_OF_GAS: Final = "out of gas"
_HALTS: Final = {
    _OUT_OF_GAS: _NO_GAS,
    "invalid opcode": f"{_EXCEPTION}invalid opcode",
    "max code size exceeded": "Error: Transaction reverted: trying to deploy a contract whose code is too large",
}
"""Hardhat's texts by the beginning of the reason of an exceptional halt. The other halts have `_NO_REASON`."""
_PANICS: Final = {
    0x01: "Assertion error",
    0x11: "Arithmetic operation overflowed outside of an unchecked block",
    0x12: "Division or modulo division by zero",
    0x21: "Tried to convert a value into an enum, but the value was too big or negative",
    0x22: "Incorrectly encoded storage byte array",
    0x31: ".pop() was called on an empty array",
    0x32: "Array accessed at an out-of-bounds or negative index",
    0x41: "Too much memory was allocated, or an array was created that is too large",
    0x51: "Called a zero-initialized variable of internal function type",
}
"""Hardhat's texts of Solidity's panic codes."""


def call_error(ctx: RpcContext, output: bytes, halt: str) -> RpcError:
    """Return Hardhat's error for a call that has reverted (with an empty `halt`) or halted.

    Code and `data` are those of Hardhat 3, which libraries for other nodes understand as well. Hardhat 2 has code
    -32603 and an object as `data`.
    """
    error = failure_error(ctx, output, halt, {})
    if error.code != INTERNAL_ERROR_CODE:
        return error
    return RpcError(REVERTED_CODE, error.message.removeprefix("Error: "), data(output))


def failure_error(ctx: RpcContext, output: bytes, halt: str, place: dict[str, str]) -> RpcError:
    """Return the error for output and halt of a failed transaction or call. `place` names the transaction."""
    observer = None if ctx.dev is None else ctx.dev.observer
    message = _meaning(output, None if observer is None else observer.reason(output), halt)
    code = SERVER_ERROR_CODE if message == _NO_GAS else INTERNAL_ERROR_CODE
    return RpcError(code, message, {"message": message, **place, "data": data(output)})


def _meaning(output: bytes, custom: str | None, halt: str) -> str:
    if not output:
        return next((text for start, text in _HALTS.items() if halt.startswith(start)), _NO_REASON)
    panic = panic_code(output)
    if panic is not None:
        text = _PANICS.get(panic)
        known = f"panic code {panic:#x} ({text})" if text else f"unknown panic code {panic:#x}"
        return f"{_EXCEPTION}reverted with {known}"
    reason = revert_reason(output)
    if reason is not None:
        return f"{_EXCEPTION}reverted with reason string '{reason}'"
    if custom is not None:
        return f"{_EXCEPTION}reverted with custom error '{custom}'"
    return f"{_EXCEPTION}reverted with an unrecognized custom error (return data: {data(output)})"
