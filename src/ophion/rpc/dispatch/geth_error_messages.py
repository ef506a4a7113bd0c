"""Error texts of go-ethereum, which client libraries match on (`--rpc-error-wording=modern`).

Libraries recognise some errors by the text of go-ethereum and raise a specific exception for each. This module replaces
the texts of these errors; other errors keep their texts. Error codes change with `--rpc-error-wording=geth` only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ophion.errors import PoolRejected, RpcError
from ophion.rpc import errors
from ophion.rpc.dispatch.error_wording import ErrorWording

_REFUSALS: Final[Mapping[str, str]] = {
    "base-fee": "max fee per gas less than block base fee",
    "blob-count": "blob transaction with a wrong number of blobs",
    "chain-id-required": "only replay-protected (EIP-155) transactions allowed over RPC",
    "fee-cap": "tx fee exceeds the configured cap",
    "gas-limit": "exceeds block gas limit",
    "gas-limit-cap": "transaction gas limit too high",
    "gas-price-too-low": "transaction underpriced: gas price below the minimum of this node",
    "init-code": "max initcode size exceeded",
    "intrinsic-gas": "intrinsic gas too low",
    "invalid-signature": "invalid sender",
    "known": "already known",
    "nonce-overflow": "nonce has max value",
    "nonce-too-low": "nonce too low",
    "tip-above-fee": "max priority fee per gas higher than max fee per gas",
    "type-not-supported": "transaction type not supported",
    "underpriced": "replacement transaction underpriced",
    "upfront-cost": "insufficient funds for gas * price + value",
    "wrong-chain-id": "invalid chain id for signer",
}
"""go-ethereum's error texts, by the pool's reason for rejecting a transaction."""

_FAULTS: Final[Mapping[str, str]] = {
    fault.message: _REFUSALS[reason] for reason, fault in errors.POOL_REASONS.items() if reason in _REFUSALS
} | {errors.INCORRECT_NONCE.message: "nonce too high"}
"""go-ethereum's error texts for calls, estimates and traces, by Ophion's own text."""

_GETH_FAULTS: Final[Mapping[str, str]] = dict.fromkeys(
    (errors.FILTER_NOT_FOUND.message, errors.LOGS_FILTER_NOT_FOUND.message), "filter not found"
)
"""Further error texts by Ophion's own text, used only with go-ethereum's error codes."""


def worded(error: BaseException, known: RpcError, method: str, wording: ErrorWording) -> RpcError:
    """Return the error `known` with the text and the code of the client that `wording` names."""
    if wording is ErrorWording.ANVIL:
        # lazy import: few nodes answer in Anvil's words
        from ophion.rpc.dispatch.anvil_error_messages import anvil_error

        found = anvil_error(error, known, method)
        if found is not None:
            return found
    return modern(error, known, method, geth_codes=wording is ErrorWording.GETH)


def modern(error: BaseException, known: RpcError, method: str, *, geth_codes: bool = False) -> RpcError:
    """Return the error `known` with go-ethereum's message for it, if any. `error` is the exception behind `known`.

    With `geth_codes`, the error also has go-ethereum's code.
    """
    if known.code == errors.METHOD_NOT_FOUND.code:
        return RpcError(known.code, f"the method {method:.100} does not exist/is not available", known.data)
    reason = error.reason if isinstance(error, PoolRejected) else None
    text = _FAULTS.get(known.message) if reason is None else _REFUSALS.get(reason)
    if text is None and geth_codes:
        text = _GETH_FAULTS.get(known.message)
    if text is None:
        return known
    return RpcError(errors.SERVER_ERROR_CODE if geth_codes else known.code, text, known.data)
