"""Snapshots of development nodes: evm_snapshot and evm_revert with their aliases."""

from __future__ import annotations

from ophion.rpc.schema.wire_types import Boolean, Quantity
from ophion.rpc.services.cheat_code_params import NumberParam, cheat_code, dev_of
from ophion.rpc.services.context import RpcContext


@cheat_code("evm_snapshot", "anvil_snapshot")
async def snapshot(ctx: RpcContext) -> Quantity:
    """Saves head, state, pooled transactions and clock; returns the id for `evm_revert`."""
    return await dev_of(ctx).snapshot()


@cheat_code("evm_revert", "anvil_revert")
async def revert(ctx: RpcContext, snapshot: NumberParam) -> Boolean:
    """Reverts to a snapshot and deletes this snapshot and all later snapshots. Returns false for an unknown id."""
    return await dev_of(ctx).revert(snapshot)
