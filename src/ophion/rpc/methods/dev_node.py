"""Information about a development node, its logging and its fork (anvil_*, hardhat_*)."""

from __future__ import annotations

from typing import Any

from ophion.dev.cheat_codes import DevNode
from ophion.errors import RpcError
from ophion.primitives.hexcodec import data
from ophion.rpc.schema.wire_types import TextParam
from ophion.rpc.services.cheat_code_params import FlagParam, Json, Nothing, cheat_code, dev_of
from ophion.rpc.services.context import RpcContext

_METHOD_NOT_FOUND_CODE = -32601


@cheat_code("anvil_nodeInfo")
def node_info(ctx: RpcContext) -> Json:
    """Returns the head, the environment of the next block, and the mining mode."""
    queries, following = ctx.queries, ctx.queries.next_block().header
    return {
        "currentBlockNumber": hex(queries.head_number),
        "currentBlockTimestamp": queries.head.timestamp,
        "currentBlockHash": data(queries.head_hash),
        "hardFork": queries.spec.fork_of(following).name.capitalize(),
        "transactionOrder": "fees",
        "environment": {
            "baseFee": hex(following.base_fee_per_gas or 0),
            "chainId": queries.spec.chain_id,
            "gasLimit": hex(following.gas_limit),
            "gasPrice": hex((following.base_fee_per_gas or 0) + 1_000_000_000),
        },
        "forkConfig": _fork_config(dev_of(ctx)),
    }


def _fork_config(dev: DevNode) -> dict[str, Any]:
    if dev.fork is None:
        return {"forkUrl": None, "forkBlockNumber": None, "forkRetryBackoff": None}
    settings = dev.fork.settings
    backoff_ms = int(1000 * settings.backoff_s)
    return {"forkUrl": settings.url, "forkBlockNumber": dev.fork.point.number, "forkRetryBackoff": backoff_ms}


def _forked_network(dev: DevNode) -> dict[str, Any] | None:
    if dev.fork is None:
        return None
    point = dev.fork.point
    return {"chainId": point.chain_id, "forkBlockNumber": point.number, "forkBlockHash": data(point.header.hash)}


@cheat_code("anvil_metadata")
def metadata(ctx: RpcContext) -> Json:
    """Returns version, chain and instance id. The instance id differs between runs of a node."""
    queries, dev = ctx.queries, dev_of(ctx)
    return {
        "clientVersion": ctx.node.client_version,
        "chainId": queries.spec.chain_id,
        "instanceId": data(dev.instance_id),
        "latestBlockNumber": queries.head_number,
        "latestBlockHash": data(queries.head_hash),
        "forkedNetwork": _forked_network(dev),
        "snapshots": {hex(number): [head.number, data(head.hash)] for number, head in dev.snapshots().items()},
    }


@cheat_code("hardhat_metadata")
def hardhat_metadata(ctx: RpcContext) -> Json:
    """Returns the same metadata as `anvil_metadata`. Available only with a preset of the development node.

    When a node offers this method, hardhat-ethers sends every transaction with a fixed gas limit, and expects an error
    if the transaction fails (see `eth_sendTransaction`).
    """
    if not ctx.has_preset:
        raise RpcError(_METHOD_NOT_FOUND_CODE, "Method not found")
    dev_of(ctx).serves_hardhat = True
    return metadata(ctx)


@cheat_code("anvil_setLoggingEnabled", "hardhat_setLoggingEnabled")
def set_logging(ctx: RpcContext, is_on: FlagParam) -> Nothing:
    """Accepted for compatibility; this node does not log single requests."""
    dev_of(ctx).logs_requests = is_on


@cheat_code("anvil_enableTraces")
def enable_traces(ctx: RpcContext) -> Nothing:
    """Accepted for compatibility; traces are always available."""


@cheat_code("anvil_setRpcUrl")
def set_rpc_url(ctx: RpcContext, url: TextParam) -> Nothing:
    """Sets the node from which this node fetches the forked chain. Has no effect on a node that does not fork."""
    dev = dev_of(ctx)
    if dev.fork is not None:
        dev.fork.use_source(url)
