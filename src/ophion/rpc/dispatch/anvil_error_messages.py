"""Texts and codes of Anvil 1.7.1 for transactions that it refuses (`--rpc-error-wording=anvil`).

viem recognises errors by their text, and asks again after some codes: after -32005, the code of Besu for a gas limit
above that of the block, viem repeats the request three times.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ophion.errors import PoolRejected, RpcError
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


def anvil_error(error: BaseException, known: RpcError, method: str) -> RpcError | None:
    """Return the error `known` with Anvil's code and text, or None if go-ethereum's words apply.

    `error` is the exception behind `known`.
    """
    if known.code == errors.METHOD_NOT_FOUND.code:
        return known
    reason = error.reason if isinstance(error, PoolRejected) else None
    found = _FAULTS.get(known.message) if reason is None else _REFUSALS.get(reason)
    if found is not None and method in _CALLS and known.message == errors.INTRINSIC_GAS.message:
        found = _TOO_LITTLE_FOR_A_CALL
    return None if found is None else RpcError(*found, known.data)
