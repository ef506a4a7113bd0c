"""eth_*: the node, its chain and gas prices (json-rpc.md 5.3, 7.1)."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Final

import orjson

from ophion.chain.fee_oracle import FeeHistory
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import BlockTag
from ophion.rpc.errors import METHOD_NOT_FOUND, invalid_params
from ophion.rpc.methods.fork_config import fork_config
from ophion.rpc.schema import render
from ophion.rpc.schema.registry import Example, method
from ophion.rpc.schema.schemas import CapabilitiesResult, FeeHistoryResult, ForkConfigResult, SyncResult
from ophion.rpc.schema.wire_types import BlockNumberParam, IntegerParam, Quantity, WireType
from ophion.rpc.services.block_reference import header_at
from ophion.rpc.services.context import RpcContext

MAX_BLOCKS: Final = 1024
MAX_PERCENTILES: Final = 100


@method("eth_blockNumber", needs={"chain"}, latest_read="number", examples=[Example([], "0x20")])
def block_number(ctx: RpcContext) -> Quantity:
    """Returns the number of the newest block."""
    return ctx.queries.head_number


@method("eth_chainId", needs={"chain"}, examples=[Example([], "0x1")])
def chain_id(ctx: RpcContext) -> Quantity | None:
    """Returns the chain id for transaction signatures; null if the genesis file has none."""
    spec = ctx.queries.spec
    return spec.chain_id if spec.names_chain_id else None


@method("eth_protocolVersion", examples=[Example([], "0x44")])
def protocol_version(ctx: RpcContext) -> Quantity:
    """Returns the highest eth protocol version that this node supports."""
    return ctx.node.protocol_version


@method("eth_syncing", needs={"chain"}, examples=[Example([], False)])
def syncing(ctx: RpcContext) -> SyncResult:
    """Returns the progress of synchronisation; false if the node is in sync."""
    status = ctx.sync_status()
    return False if status is None else status.fields()


@method("eth_config", needs={"chain"})
def config(ctx: RpcContext) -> ForkConfigResult:
    """Returns the current, the next and the last known fork configuration (EIP-7910)."""
    return fork_config(ctx.queries, ctx.node.genesis_hash)


_HISTORIES: Final = ("state", "tx", "logs", "receipts", "blocks", "stateproofs")
_OF_STATE: Final = ("state", "stateproofs")


@method("eth_capabilities", needs={"chain"})
def capabilities(ctx: RpcContext) -> CapabilitiesResult:
    """Returns which blocks and states this node can serve, for load balancers.

    States begin at `oldestBlock`: `--state-history` prunes older states. A node that has started with
    `--sync-mode=SNAP` or `CHECKPOINT` has no states before its first block. Blocks, transactions, receipts and logs
    begin at genesis. After `--sync-mode=SNAP`, they begin at a later block, until all older blocks are downloaded.
    """
    head = ctx.queries.head
    bodies = {"disabled": False, "oldestBlock": quantity(ctx.queries.chain.history_start)}
    states = {"disabled": False, "oldestBlock": quantity(ctx.queries.chain.oldest_state)}
    histories = dict.fromkeys(_HISTORIES, bodies) | dict.fromkeys(_OF_STATE, states)
    return {"head": {"number": quantity(head.number), "hash": data(head.hash)}} | histories


@method("eth_gasPrice", needs={"chain"}, examples=[Example([], "0x3e8")])
async def gas_price(ctx: RpcContext) -> Quantity:
    """Suggests a gas price: the median of recent blocks, but at least the price that the next block requires."""
    return await ctx.fees.gas_price()


@method("eth_maxPriorityFeePerGas", needs={"chain"})
async def max_priority_fee_per_gas(ctx: RpcContext) -> Quantity:
    """Suggests a priority fee: the median of recent blocks, but at least the minimum of this node."""
    return await ctx.fees.max_priority_fee()


@method("eth_baseFee", needs={"chain"})
def base_fee(ctx: RpcContext) -> Quantity:
    """Returns the base fee of the next block. Not available before London."""
    fee = ctx.queries.next_base_fee()
    if fee is None:
        raise METHOD_NOT_FOUND("there is no base fee before London")
    return fee


@method("eth_blobBaseFee", needs={"chain"})
def blob_base_fee(ctx: RpcContext) -> Quantity:
    """Returns the blob gas price of the next block. Not available before Cancun."""
    fee = ctx.queries.next_blob_base_fee()
    if fee is None:
        raise METHOD_NOT_FOUND("there is no blob gas before Cancun")
    return fee


def _decode_percentiles(value: object) -> list[float]:
    if type(value) is not list or len(value) > MAX_PERCENTILES:
        raise invalid_params(f"percentiles: an array of at most {MAX_PERCENTILES} numbers is expected")
    if not all(type(percentile) in (int, float) and 0 <= percentile <= 100 for percentile in value):
        raise invalid_params("percentiles: numbers from 0 to 100 are expected")
    if any(after < before for before, after in pairwise(value)):
        raise invalid_params("percentiles: numbers in ascending order are expected")
    return value


PercentilesParam = Annotated[
    list[float],
    WireType(
        "percentiles",
        "numbers from 0 to 100",
        {"type": "array", "items": {"type": "number"}},
        _decode_percentiles,
    ),
]


@method(
    "eth_feeHistory",
    needs={"chain"},
    examples=[
        Example(
            ["0x2", "latest", [50]],
            {
                "oldestBlock": "0x1f",
                "baseFeePerGas": ["0x0", "0x0", "0x0"],
                "gasUsedRatio": [0.00773588677333021, 0.007545537421791245],
                "baseFeePerBlobGas": ["0x0", "0x0", "0x0"],
                "blobGasUsedRatio": [0.0, 0.0],
                "reward": [["0x1"], ["0x1"]],
            },
        )
    ],
)
async def get_fee_history(
    ctx: RpcContext, block_count: IntegerParam, newest: BlockNumberParam, percentiles: PercentilesParam | None = None
) -> FeeHistoryResult:
    """Returns base fees and gas used ratios of a block range and, for given percentiles, the priority fees paid.

    The last base fee belongs to the block after the range. Percentiles are weighted by gas used and must be ascending.
    The result has at most 1024 blocks, the newest blocks of the range.
    """
    if block_count < 1:
        raise invalid_params("blockCount: a number above 0 is expected")
    header = header_at(ctx, BlockTag.LATEST if newest is BlockTag.PENDING else newest)
    if header is None and ctx.is_anvil and isinstance(newest, int):
        # as in Anvil, a range beyond the head has only the blocks that exist
        missing = newest - ctx.queries.head_number
        if missing >= block_count:
            return orjson.dumps(render.fee_history(_history_of_no_blocks(ctx, newest - block_count + 1)))
        block_count -= missing
        header = header_at(ctx, BlockTag.LATEST)
    if header is None:
        raise invalid_params("newest: there is no such block")
    history = await ctx.fees.fee_history(min(block_count, MAX_BLOCKS), header, percentiles)
    if history.rendered is None:
        history.rendered = orjson.dumps(render.fee_history(history))
    return history.rendered


def _history_of_no_blocks(ctx: RpcContext, oldest: int) -> FeeHistory:
    """Return the fees of the next block only."""
    fees = [ctx.queries.next_base_fee() or 0]
    return FeeHistory(oldest, fees, [], [ctx.queries.next_blob_base_fee() or 0], [], [])
