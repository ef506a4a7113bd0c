"""Errors in the words that today's libraries look for (`--rpc-error-wording=modern`).

Libraries recognise some refusals by their text and raise an error of its own for each; the texts they know are those of
go-ethereum. Here these words take the place of ours. Codes never change, and what no library looks for keeps its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ophion.errors import PoolRejected, RpcError
from ophion.rpc import errors

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
"""By the reason for which the pool refuses a transaction."""

_FAULTS: Final[Mapping[str, str]] = {
    fault.message: _REFUSALS[reason] for reason, fault in errors.POOL_REASONS.items() if reason in _REFUSALS
} | {errors.INCORRECT_NONCE.message: "nonce too high"}
"""By the text of the same refusal where no pool is involved: calls, estimates, traces."""


def modern(error: BaseException, known: RpcError, method: str) -> RpcError:
    """An error as `known`, in the words that libraries look for; `error` is what was raised."""
    if known.code == errors.METHOD_NOT_FOUND.code:
        return RpcError(known.code, f"the method {method:.100} does not exist/is not available", known.data)
    reason = error.reason if isinstance(error, PoolRejected) else None
    text = _FAULTS.get(known.message) if reason is None else _REFUSALS.get(reason)
    return known if text is None else RpcError(known.code, text, known.data)
