"""Decides which requests to a forked chain go to the source node, by block number, block hash or transaction hash."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson
from msgspec import Struct

from ophion.dev.fork.remote_state import Fork
from ophion.errors import RpcError
from ophion.rpc.services.context import RpcContext
from ophion.runtime.blocking_json_rpc import Failure

_BLOCKS: Final = {
    "eth_getBlockByNumber": 0,
    "eth_getBlockByHash": 0,
    "eth_getBlockReceipts": 0,
    "eth_getBlockTransactionCountByNumber": 0,
    "eth_getBlockTransactionCountByHash": 0,
    "eth_getTransactionByBlockNumberAndIndex": 0,
    "eth_getTransactionByBlockHashAndIndex": 0,
    "eth_getRawTransactionByBlockNumberAndIndex": 0,
    "eth_getRawTransactionByBlockHashAndIndex": 0,
    "eth_getUncleByBlockNumberAndIndex": 0,
    "eth_getUncleByBlockHashAndIndex": 0,
    "eth_getUncleCountByBlockNumber": 0,
    "eth_getUncleCountByBlockHash": 0,
    "eth_getHeaderByNumber": 0,
    "eth_getHeaderByHash": 0,
    "erigon_getHeaderByNumber": 0,
    "debug_traceBlockByNumber": 0,
    "debug_traceBlockByHash": 0,
    "trace_block": 0,
    "trace_replayBlockTransactions": 0,
    "eth_feeHistory": 1,
}
"""Methods about a block, with the position of the block parameter. The source node answers up to the forked block."""

_STATES: Final = {
    "eth_getBalance": 1,
    "eth_getCode": 1,
    "eth_getTransactionCount": 1,
    "eth_getAccount": 1,
    "eth_getStorageAt": 2,
    "eth_getProof": 2,
    "eth_call": 1,
    "eth_estimateGas": 1,
    "eth_createAccessList": 1,
    "debug_traceCall": 1,
    "trace_call": 2,
}
"""Methods about the state after a block. The source node answers for blocks before the forked block."""

_TRANSACTIONS: Final = (
    "eth_getTransactionByHash",
    "eth_getTransactionReceipt",
    "eth_getRawTransactionByHash",
    "debug_traceTransaction",
    "trace_transaction",
    "trace_replayTransaction",
)
_HASH_TEXT_LENGTH: Final = 66
_EPOCHS: Final = {"latest": 0, "safe": 1, "finalized": 2}
"""Distance of a tag to the head, in epochs (`ChainQueries.epoch_slots`)."""


class SourceResponse(Struct, frozen=True):
    """A response of the source node, whose chain this node forks."""

    value: Any

    def encode(self) -> bytes:
        """Return the result as JSON; raises the error of the source node."""
        if isinstance(self.value, Failure):
            raise RpcError(self.value.code, self.value.message, self.value.data)
        return orjson.dumps(self.value)


async def route(ctx: RpcContext, fork: Fork, name: str, params: Sequence[Any]) -> SourceResponse | None:
    """Return the answer of the source node. None for a request that this node answers itself."""
    given = list(params)
    if name in _TRANSACTIONS and given and _is_hash(given[0]):
        return await _transaction(ctx, fork, name, given)
    for positions, is_state in ((_BLOCKS, False), (_STATES, True)):
        position = positions.get(name)
        if position is None:
            continue
        block = given[position] if len(given) > position else "latest"
        if _is_older(ctx, fork, block, is_state):
            if len(given) > position:
                given[position] = _plain(ctx, block)
            return SourceResponse(await fork.ask(name, given))
    return None


async def _transaction(ctx: RpcContext, fork: Fork, name: str, given: list[Any]) -> SourceResponse | None:
    hash = bytes.fromhex(given[0][2:])
    if ctx.queries.transaction_position(hash) is not None or ctx.pool.get(hash) is not None:
        return None
    answer = await fork.ask(name, given)
    if isinstance(answer, dict) and _is_newer(fork, answer):
        return SourceResponse(None)
    return SourceResponse(answer)


def _is_newer(fork: Fork, answer: dict[str, Any]) -> bool:
    """Whether the answer is a transaction that the source node mined after the forked block, or has not mined yet."""
    if "blockNumber" not in answer:
        return False
    number = answer["blockNumber"]
    return number is None or int(number, 16) > fork.point.number


def _is_older(ctx: RpcContext, fork: Fork, block: Any, is_state: bool) -> bool:
    """Whether the source node must answer for this block: the block is before the fork or unknown to this node. For the
    forked block, the source answers unless `is_state`.
    """
    if isinstance(block, dict):
        block = block.get("blockHash", block.get("blockNumber"))
    if not isinstance(block, str):
        return False
    if _is_hash(block):
        hash = bytes.fromhex(block[2:])
        is_base = hash == fork.point.header.hash
        return (is_base and not is_state) or (not is_base and ctx.queries.store.header(hash) is None)
    number = _number(ctx, block)
    return number is not None and (number < fork.point.number or (number == fork.point.number and not is_state))


def _number(ctx: RpcContext, block: str) -> int | None:
    if block in _EPOCHS:
        return max(0, ctx.queries.head_number - _EPOCHS[block] * ctx.queries.epoch_slots)
    if block == "earliest":
        return 0
    try:
        return int(block, 16)
    except ValueError:
        return None


def _plain(ctx: RpcContext, block: Any) -> Any:
    """Replace a tag such as `latest` by the number of the block, because on the source node the tag names a newer
    block.
    """
    return hex(_number(ctx, block) or 0) if isinstance(block, str) and block in _EPOCHS else block


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and len(value) == _HASH_TEXT_LENGTH and value.startswith("0x")


async def older_logs(ctx: RpcContext, fork: Fork, params: Sequence[Any]) -> list[Any]:
    """Return the logs of a filter in blocks up to the forked block."""
    given = params[0] if params and isinstance(params[0], dict) else {}
    if given.get("blockHash") is not None:
        if not _is_older(ctx, fork, given["blockHash"], is_state=False):
            return []
        asked = given
    else:
        first = _number(ctx, str(given.get("fromBlock") or "latest"))
        last = _number(ctx, str(given.get("toBlock") or "latest"))
        if first is None or first > fork.point.number:
            return []
        last = fork.point.number if last is None else min(last, fork.point.number)
        asked = {**given, "fromBlock": hex(first), "toBlock": hex(last)}
    answer = await fork.ask("eth_getLogs", [asked])
    if isinstance(answer, Failure):
        raise RpcError(answer.code, answer.message, answer.data)
    return list(answer or ())
