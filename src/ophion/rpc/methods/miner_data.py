"""eth_getMinerData*: rewards and fees of the producer of a block."""

from __future__ import annotations

from typing import Annotated, Any

import orjson

from ophion.chain.block import ommers_of
from ophion.native.crypto import keccak256
from ophion.primitives.header import HashedHeader
from ophion.primitives.hexcodec import data, quantity
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.wire_types import BlockNumberParam, HashParam, object_result
from ophion.rpc.services.block_reference import header_at
from ophion.rpc.services.context import RpcContext

_TEXT = {"type": "string"}
MinerDataResult = Annotated[
    dict[str, Any],
    object_result(
        "miner data",
        "rewards and fees of the producer of a block",
        {
            "type": "object",
            "properties": {
                "netBlockReward": _TEXT,
                "staticBlockReward": _TEXT,
                "transactionFee": _TEXT,
                "uncleInclusionReward": _TEXT,
                "uncleRewards": {"type": "array"},
                "coinbase": _TEXT,
                "extraData": _TEXT,
                "difficulty": _TEXT,
                "totalDifficulty": _TEXT,
            },
        },
    ),
]


@method("eth_getMinerDataByBlockHash", needs={"chain"})
async def by_hash(ctx: RpcContext, block_hash: HashParam) -> MinerDataResult | None:
    """Returns rewards and fees of the producer of a block, in wei; null if the block is unknown."""
    return await _miner_data(ctx, ctx.queries.header(block_hash))


@method("eth_getMinerDataByBlockNumber", needs={"chain"})
async def by_number(ctx: RpcContext, block: BlockNumberParam) -> MinerDataResult | None:
    """Returns rewards and fees of the producer of a block, in wei; null if the block does not exist."""
    return await _miner_data(ctx, header_at(ctx, block))


async def _miner_data(ctx: RpcContext, header: HashedHeader | None) -> dict[str, Any] | None:
    return None if header is None else await ctx.lanes.read.run(lambda: _read(ctx, header))


def _read(ctx: RpcContext, header: HashedHeader) -> dict[str, Any] | None:
    store, engine = ctx.queries.store, ctx.queries.engine
    body = store.body(header.hash)
    receipts = store.block_receipts_json(header.hash, False)
    if body is None or receipts is None:
        return None
    ommers = ommers_of(body)
    # genesis pays no reward, and with proof of work each ommer adds 1/32 to the reward of the block
    rewards = engine.rewards(header, ()) if header.number else []
    static = rewards[0][1] if rewards else 0
    inclusion = static * len(ommers) // 32
    fees = sum(int(one["gasUsed"], 16) * int(one["effectiveGasPrice"], 16) for one in orjson.loads(receipts))
    total = ctx.queries.total_difficulty(header.hash)
    return {
        "netBlockReward": quantity(static + fees + inclusion),
        "staticBlockReward": quantity(static),
        "transactionFee": quantity(fees),
        "uncleInclusionReward": quantity(inclusion),
        "uncleRewards": [{"hash": data(keccak256(one.encode())), "coinbase": data(one.coinbase)} for one in ommers],
        "coinbase": data(header.header.coinbase),
        "extraData": data(header.header.extra_data),
        "difficulty": quantity(header.header.difficulty),
        "totalDifficulty": quantity(total or 0),
    }
