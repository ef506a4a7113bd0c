"""Impersonation in development nodes: transactions of accounts without their signatures (anvil_*, hardhat_*)."""

from __future__ import annotations

from ophion.rpc.errors import invalid_params
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import AddressParam, DataParam, HashResult
from ophion.rpc.services.cheat_code_params import FlagParam, Json, Nothing, cheat_code, dev_of
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.transaction_request import UnreadRequestParam, decode_transaction_request, filled

_SIGNATURE_BYTES = 65


@cheat_code("anvil_impersonateAccount", "hardhat_impersonateAccount")
def impersonate(ctx: RpcContext, address: AddressParam) -> Json:
    """Accepts transactions of an account without its signature."""
    dev = dev_of(ctx)
    dev.impersonated.add(address)
    return True if ctx.is_hardhat else None


@cheat_code("anvil_stopImpersonatingAccount", "hardhat_stopImpersonatingAccount")
def stop_impersonating(ctx: RpcContext, address: AddressParam) -> Json:
    """Requires signatures of an account again."""
    dev = dev_of(ctx)
    was_there = address in dev.impersonated
    dev.impersonated.discard(address)
    return was_there if ctx.is_hardhat else None


@cheat_code("anvil_autoImpersonateAccount", "hardhat_autoImpersonateAccount")
def auto_impersonate(ctx: RpcContext, is_on: FlagParam) -> Nothing:
    """Accepts transactions of all accounts without signatures, or requires signatures again."""
    dev_of(ctx).impersonates_all = is_on


@cheat_code("anvil_impersonateSignature")
def impersonate_signature(ctx: RpcContext, signature: DataParam, address: AddressParam) -> Nothing:
    """Makes the ecrecover precompile return this address for a signature."""
    if len(signature) != _SIGNATURE_BYTES:
        raise invalid_params(f"signature: exactly {_SIGNATURE_BYTES} bytes are expected")
    dev_of(ctx).impersonate_signature(signature, address)


@method("eth_sendUnsignedTransaction", needs={"dev"})
async def send_unsigned(ctx: RpcContext, transaction: UnreadRequestParam) -> HashResult:
    """Sends a transaction of any account without a signature."""
    request = decode_transaction_request(transaction)
    unsigned = await filled(ctx, request)
    return await ctx.pool.send_decoded(dev_of(ctx).unsigned(unsigned, request.sender))
