"""All error responses of the interface, and the mapping from exceptions to them; GraphQL uses the same codes.

Codes and messages follow json-rpc.md 2; several conditions share -32000. Handlers raise domain errors or one of the
`Fault`s below. `as_rpc_error` maps every exception of a handler, so an exception has the same code in all methods. An
unmapped exception is a bug: the dispatcher logs it and answers `Internal error`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
from msgspec import Struct

from ophion.chain.queries import UnknownBlock
from ophion.enclave.error_codes import WORDS
from ophion.errors import (
    DecodeError,
    EnclaveError,
    MissingStateError,
    OphionError,
    PoolRejected,
    PrivacyRefused,
    RpcError,
    RulesError,
    StorageError,
)
from ophion.native import exceptions
from ophion.primitives.revert_reason import revert_reason
from ophion.runtime.thread_pools import DeadlineExceeded, LaneFull

NULL: Final = b"null"
"""Id in the response to a request whose id is missing or unreadable."""
STOPS: Final = (KeyboardInterrupt, SystemExit)
"""Exceptions that end the process. All other exceptions end only a request, even a panic of the Rust extension (a
`BaseException`).
"""

INVALID_PARAMS_CODE: Final = -32602
INTERNAL_ERROR_CODE: Final = -32603
SERVER_ERROR_CODE: Final = -32000
REVERTED_CODE: Final = 3
LIMIT_EXCEEDED_CODE: Final = -38026
"""Error code when a request exceeds a limit that the specification leaves to the node."""


class Fault(Struct, frozen=True):
    """Code and message of an error. Calling a `Fault` creates the exception."""

    code: int
    message: str

    def __call__(self, data: str | None = None) -> RpcError:
        return RpcError(self.code, self.message, data)


PARSE_ERROR: Final = Fault(-32700, "Parse error")
INVALID_REQUEST: Final = Fault(-32600, "Invalid Request")
METHOD_NOT_FOUND: Final = Fault(-32601, "Method not found")
METHOD_NOT_ENABLED: Final = Fault(-32604, "Method not enabled")
INTERNAL_ERROR: Final = Fault(INTERNAL_ERROR_CODE, "Internal error")
TIMEOUT_EXPIRED: Final = Fault(INTERNAL_ERROR_CODE, "Timeout expired")
BATCH_TOO_LARGE: Final = Fault(-32005, "Number of requests exceeds max batch size")
REQUEST_TOO_LARGE: Final = Fault(-32005, "Number of values exceeds the limit of one request")
UNAUTHORIZED: Final = Fault(-40100, "Unauthorized")
TOO_MANY_FILTERS: Final = Fault(-32005, "Number of filters exceeds the limit")
TOO_MANY_SUBSCRIPTIONS: Final = Fault(-32005, "Number of subscriptions exceeds the limit")
TOO_MANY_TRACES: Final = Fault(-32005, "Number of traces being read exceeds the limit")
TOO_MANY_CONNECTIONS: Final = Fault(-32005, "Too many connections")
TOO_MANY_BYTES: Final = Fault(-32005, "Too many bytes are held")
RESPONSE_TOO_LARGE: Final = Fault(-32005, "Response exceeds maximum RPC response size")
RANGE_TOO_LARGE: Final = Fault(-32005, "Requested range exceeds maximum RPC range limit")

P2P_DISABLED: Final = Fault(SERVER_ERROR_CODE, "P2P has been disabled. This functionality is not available")
P2P_NOT_RUNNING: Final = Fault(SERVER_ERROR_CODE, "P2P network is not running")
INVALID_NODE_ID: Final = Fault(
    SERVER_ERROR_CODE,
    "Invalid node ID: node ID must have exactly 128 hexadecimal characters and should not include any '0x' hex prefix.",
)
NODE_NOT_PERMITTED: Final = Fault(SERVER_ERROR_CODE, "Cannot add a non-permitted node as a peer")
FILTER_NOT_FOUND: Final = Fault(SERVER_ERROR_CODE, "Filter not found")
LOGS_FILTER_NOT_FOUND: Final = Fault(SERVER_ERROR_CODE, "Logs filter not found")
SUBSCRIPTION_NOT_FOUND: Final = Fault(SERVER_ERROR_CODE, "Subscription not found")
NO_WORK: Final = Fault(SERVER_ERROR_CODE, "No mining work available yet")
COINBASE_UNKNOWN: Final = Fault(SERVER_ERROR_CODE, "Coinbase must be explicitly specified")
ACCOUNT_NOT_FOUND: Final = Fault(SERVER_ERROR_CODE, "Account not found")
STATE_UNAVAILABLE: Final = Fault(SERVER_ERROR_CODE, "World state unavailable")
BLOCK_NOT_FOUND: Final = Fault(SERVER_ERROR_CODE, "Block not found")
GENESIS_NOT_TRACEABLE: Final = Fault(SERVER_ERROR_CODE, "Genesis block is not traceable")
PARENT_NOT_FOUND: Final = Fault(SERVER_ERROR_CODE, "Parent block not found")
INVALID_INPUT: Final = Fault(SERVER_ERROR_CODE, "Invalid input")
UNKNOWN_BLOCK: Final = Fault(-39001, "Unknown block")
NONCE_TOO_LOW: Final = Fault(-32001, "Nonce too low")
INVALID_SIGNATURE: Final = Fault(-32002, "Invalid signature")
INTRINSIC_GAS: Final = Fault(-32003, "Intrinsic gas exceeds gas limit")
UPFRONT_COST: Final = Fault(-32004, "Upfront cost exceeds account balance")
GAS_LIMIT: Final = Fault(-32005, "Transaction gas limit exceeds block gas limit")
INCORRECT_NONCE: Final = Fault(-32006, "Incorrect nonce")
NOT_AUTHORIZED: Final = Fault(-32007, "Sender account not authorized to send transactions")
SYNC_IN_PROGRESS: Final = Fault(-32008, "Initial sync is still in progress")
PRICE_TOO_LOW: Final = Fault(-32009, "Gas price below configured minimum gas price")
BASE_FEE_TOO_LOW: Final = Fault(-32009, "Gas price below current base fee")
WRONG_CHAIN_ID: Final = Fault(SERVER_ERROR_CODE, "Wrong chainId")
CHAIN_ID_NOT_SUPPORTED: Final = Fault(SERVER_ERROR_CODE, "ChainId not supported")
CHAIN_ID_REQUIRED: Final = Fault(SERVER_ERROR_CODE, "ChainId is required")
KNOWN_TRANSACTION: Final = Fault(SERVER_ERROR_CODE, "Known transaction")
UNDERPRICED: Final = Fault(SERVER_ERROR_CODE, "Replacement transaction underpriced")
FEE_CAP_EXCEEDED: Final = Fault(SERVER_ERROR_CODE, "Transaction fee cap exceeded")
TIP_ABOVE_FEE: Final = Fault(SERVER_ERROR_CODE, "Max priority fee per gas exceeds max fee per gas")
COINBASE_NOT_SET: Final = Fault(-32010, "Coinbase not set. Unable to start mining without a coinbase")

PRIVACY_CODE: Final = -50100
ENCLAVE_CODE: Final = -50200
PRIVACY_OFF: Final = Fault(PRIVACY_CODE, "Privacy is not enabled")
NO_PRECOMPILE: Final = Fault(PRIVACY_CODE, "Privacy is not enabled to get the precompiled address")
ENCLAVE_TROUBLE: Final = Fault(PRIVACY_CODE, "Error communicating with enclave")


def invalid_params(detail: str | None = None) -> RpcError:
    """Return the -32602 error; `detail` goes into `data`."""
    return RpcError(INVALID_PARAMS_CODE, "Invalid params", detail)


def reverted(output: bytes, reason: str | None = None) -> RpcError:
    """Return error 3 with the revert bytes as data. The message includes the reason if Solidity encoded a reason."""
    reason = reason or revert_reason(output)
    message = f"execution reverted: {reason}" if reason else "execution reverted"
    return RpcError(REVERTED_CODE, message, "0x" + output.hex())


POOL_REASONS: Final[Mapping[str, Fault]] = {
    "gas-price-too-low": PRICE_TOO_LOW,
    "base-fee": BASE_FEE_TOO_LOW,
    "wrong-chain-id": WRONG_CHAIN_ID,
    "chain-id-not-supported": CHAIN_ID_NOT_SUPPORTED,
    "chain-id-required": CHAIN_ID_REQUIRED,
    "invalid-signature": INVALID_SIGNATURE,
    "intrinsic-gas": INTRINSIC_GAS,
    "gas-limit": GAS_LIMIT,
    "syncing": SYNC_IN_PROGRESS,
    "upfront-cost": UPFRONT_COST,
    "nonce-too-low": NONCE_TOO_LOW,
    "not-authorized": NOT_AUTHORIZED,
    "known": KNOWN_TRANSACTION,
    "underpriced": UNDERPRICED,
    "tip-above-fee": TIP_ABOVE_FEE,
    "fee-cap": FEE_CAP_EXCEEDED,
}
"""Error for each reason for which the pool rejects a transaction."""


def _pool_rejected(error: PoolRejected) -> RpcError:
    if error.reason in ("malformed", "type-not-supported"):
        return invalid_params(error.message)
    if error.reason == "gas-limit-cap":
        return RpcError(GAS_LIMIT.code, error.message)
    fault = POOL_REASONS.get(error.reason)
    return fault(error.detail) if fault is not None else RpcError(SERVER_ERROR_CODE, error.message)


_LIMIT: Final = "limit: "
"""Prefix of the Rust extension's error messages for searches that hit a limit."""


def is_limit(error: OphionError) -> bool:
    """Return whether a search hit a limit. Other storage errors mean a database failure."""
    return error.message.startswith(_LIMIT)


def _storage_failed(error: StorageError) -> RpcError:
    return RANGE_TOO_LARGE(error.message.removeprefix(_LIMIT)) if is_limit(error) else INTERNAL_ERROR(error.message)


def _enclave_failed(error: EnclaveError) -> RpcError:
    """Return the RPC error for an enclave error. A known enclave error keeps its own code."""
    if error.code in WORDS:
        return RpcError(ENCLAVE_CODE, error.code)
    return ENCLAVE_TROUBLE(error.message)


def _itself(error: RpcError) -> RpcError:
    return error


# the first matching entry applies, so each subclass precedes its base class
_TABLE: Final[tuple[tuple[type[Exception], Callable[..., RpcError]], ...]] = (
    (RpcError, _itself),
    (PoolRejected, _pool_rejected),
    (UnknownBlock, lambda error: UNKNOWN_BLOCK()),
    (LaneFull, lambda error: RpcError(-32005, error.message)),
    (DeadlineExceeded, lambda error: TIMEOUT_EXPIRED()),
    (MissingStateError, lambda error: STATE_UNAVAILABLE(error.message)),
    (DecodeError, lambda error: invalid_params(error.message)),
    (StorageError, _storage_failed),
    (RulesError, lambda error: RpcError(SERVER_ERROR_CODE, error.message, error.detail)),
    (EnclaveError, _enclave_failed),
    (PrivacyRefused, lambda error: RpcError(PRIVACY_CODE, error.message)),
    (OphionError, lambda error: RpcError(SERVER_ERROR_CODE, error.message)),
)


def as_rpc_error(error: BaseException) -> RpcError | None:
    """Return the error response for an exception, or None for an exception that no rule maps."""
    if isinstance(error, exceptions.NativeError):
        error = exceptions.as_ophion_error(error)
    for kind, answer in _TABLE:
        if isinstance(error, kind):
            return answer(error)
    return None


def clear_traceback(error: BaseException | None) -> None:
    """Clear the traceback of an error that has become a response.

    Traceback, frames and error form a reference cycle, and the frames hold request data. Without this call, a large
    request's objects (some hundred thousand) would stay until the garbage collector runs.
    """
    while error is not None and (error.__traceback__ is not None or error.__context__ is not None):
        error.__traceback__ = None
        passed, error.__context__ = error.__context__, None
        error = passed


def failure(id_text: bytes, error: RpcError) -> bytes:
    """Return an error response. The response has `data` only if the error has data."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id_text, orjson.dumps(body))
