"""Texts and codes of Anvil 1.7.1 for transactions that it refuses, and for reverts (`--rpc-error-wording=anvil`).

viem recognises errors by their text, and asks again after some codes: after -32005, the code of Besu for a gas limit
above that of the block, viem repeats the request three times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ophion.errors import PoolRejected, RpcError
from ophion.primitives.revert_reason import revert_reason
from ophion.rpc import errors

_REJECTED: Final = -32003
_CALLS: Final = frozenset({"eth_call", "eth_estimateGas", "eth_createAccessList"})

_REFUSALS: Final[Mapping[str, tuple[int, str]]] = {
    "base-fee": (_REJECTED, "max fee per gas less than block base fee"),
    "gas-limit": (errors.SERVER_ERROR_CODE, "intrinsic gas too high -- tx.gas_limit > env.block.gas_limit"),
    "init-code": (_REJECTED, "max initcode size exceeded"),
    "intrinsic-gas": (errors.SERVER_ERROR_CODE, "intrinsic gas too low"),
    "known": (_REJECTED, "transaction already imported"),
    "malformed": (errors.INVALID_PARAMS_CODE, "Failed to decode transaction"),
    "nonce-overflow": (_REJECTED, "nonce has max value"),
    "nonce-too-low": (_REJECTED, "nonce too low"),
    "tip-above-fee": (_REJECTED, "max priority fee per gas higher than max fee per gas"),
    "underpriced": (_REJECTED, "replacement transaction underpriced"),
    "upfront-cost": (_REJECTED, "Insufficient funds for gas * price + value"),
    "wrong-chain-id": (_REJECTED, "invalid chain id for signer"),
}
"""Anvil's code and text, by the pool's reason for rejecting a transaction."""

_FAULTS: Final[Mapping[str, tuple[int, str]]] = {
    fault.message: _REFUSALS[reason] for reason, fault in errors.POOL_REASONS.items() if reason in _REFUSALS
}
"""Anvil's code and text for calls, by Ophion's own text."""

_TOO_LITTLE_FOR_A_CALL: Final = (
    errors.SERVER_ERROR_CODE,
    "intrinsic gas too high -- CallGasCostMoreThanGasLimit",
)

_PANIC: Final = bytes.fromhex("4e487b71")
_SELECTOR_BYTES: Final = 4
_PANIC_BYTES: Final = _SELECTOR_BYTES + 32
_PANICS: Final[Mapping[int, str]] = {
    0x00: "generic/unspecified error",
    0x01: "assertion failed",
    0x11: "arithmetic underflow or overflow",
    0x12: "division or modulo by zero",
    0x21: "failed to convert value into enum type",
    0x22: "storage byte array incorrectly encoded",
    0x31: "called `.pop()` on an empty array",
    0x32: "array out-of-bounds access",
    0x41: "memory allocation error",
    0x51: "called an invalid internal function",
}
_MAX_SHOWN_BYTES: Final = 4096
"""Maximum size of revert data that the text repeats."""


def anvil_error(error: BaseException, known: RpcError, method: str) -> RpcError | None:
    """Return the error `known` with Anvil's code and text, or None if go-ethereum's words apply.

    `error` is the exception behind `known`.
    """
    if known.code == errors.METHOD_NOT_FOUND.code:
        return known
    if known.code == errors.REVERTED_CODE and isinstance(known.data, str):
        output = bytes.fromhex(known.data.removeprefix("0x"))
        # replace only the default message: another message already names the custom error, from an ABI of `--artifacts`
        is_default = known.message == errors.reverted(output).message
        reason = _revert_text(output) if is_default else None
        return known if reason is None else errors.reverted(output, reason)
    reason = error.reason if isinstance(error, PoolRejected) else None
    found = _FAULTS.get(known.message) if reason is None else _REFUSALS.get(reason)
    if found is not None and method in _CALLS and known.message == errors.INTRINSIC_GAS.message:
        found = _TOO_LITTLE_FOR_A_CALL
    return None if found is None else RpcError(*found, known.data)


def _revert_text(output: bytes) -> str | None:
    """Return Anvil's text for revert data; None for empty data and for `Error(string)`, which have the usual text."""
    if not output or (revert_reason(output) is not None and not output.startswith(_PANIC)):
        return None
    selector, rest = output[:_SELECTOR_BYTES], output[_SELECTOR_BYTES:]
    if len(selector) < _SELECTOR_BYTES:
        return f"custom error bytes 0x{output.hex()}"
    if selector == _PANIC and len(output) == _PANIC_BYTES:
        code = int.from_bytes(rest, "big")
        return f"panic: {_PANICS.get(code, 'unknown code')} (0x{code:02x})"
    shown = output if len(output) <= _MAX_SHOWN_BYTES else b""
    text = _utf8(shown)
    if text:
        return text
    name = f"custom error 0x{selector.hex()}"
    if not rest or not shown:
        return name
    return f"{name}: {_utf8(rest) or rest.hex()}"


def _utf8(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
