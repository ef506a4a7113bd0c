"""The private transactions component, and the RPC errors of its enclave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ophion.errors import EnclaveError, OphionError, RpcError
from ophion.rpc.errors import PRIVACY_OFF, as_rpc_error
from ophion.rpc.services.context import RpcContext

if TYPE_CHECKING:
    from ophion.privacy.service import Privacy


def private(ctx: RpcContext) -> Privacy:
    """Return the private transactions component of this node."""
    assert ctx.privacy is not None, "methods that need it are bound to an error without it"
    return ctx.privacy


def enclave_error(error: OphionError, otherwise: str) -> RpcError:
    """Return an RPC error with the enclave's error code, or with the message `otherwise` if the error has no code."""
    known = as_rpc_error(error) if isinstance(error, EnclaveError) and error.code else None
    return known if known is not None else RpcError(PRIVACY_OFF.code, otherwise, error.message)
