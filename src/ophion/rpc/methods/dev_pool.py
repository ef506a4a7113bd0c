"""Removes transactions from the pool of a development node (anvil_*, hardhat_*)."""

from __future__ import annotations

from ophion.errors import RpcError
from ophion.primitives.hexcodec import data
from ophion.rpc.errors import INVALID_PARAMS_CODE
from ophion.rpc.schema.wire_types import AddressParam, Boolean, HashParam
from ophion.rpc.services.cheat_code_params import Json, Nothing, cheat_code, dev_of
from ophion.rpc.services.context import RpcContext


@cheat_code("anvil_dropTransaction")
def drop_transaction(ctx: RpcContext, hash: HashParam) -> Json:
    """Removes a transaction from the pool; returns its hash, or null if the pool does not have the transaction."""
    return data(hash) if dev_of(ctx).drop(hash) else None


@cheat_code("hardhat_dropTransaction")
def hardhat_drop_transaction(ctx: RpcContext, hash: HashParam) -> Boolean:
    """Removes a transaction from the pool; returns whether the pool had it, as Hardhat's helpers expect.

    A mined transaction is an error.
    """
    if ctx.queries.store.receipt_json(hash, False) is not None:
        raise RpcError(INVALID_PARAMS_CODE, f"Transaction {data(hash)} cannot be dropped because it's already mined")
    return dev_of(ctx).drop(hash)


@cheat_code("anvil_dropAllTransactions", "hardhat_dropAllTransactions")
def drop_all_transactions(ctx: RpcContext) -> Nothing:
    """Removes all transactions from the pool."""
    dev_of(ctx).drop_all()


@cheat_code("anvil_removePoolTransactions", "hardhat_removePoolTransactions")
def remove_pool_transactions(ctx: RpcContext, sender: AddressParam) -> Nothing:
    """Removes all transactions of an account from the pool."""
    dev_of(ctx).drop_all(sender)
