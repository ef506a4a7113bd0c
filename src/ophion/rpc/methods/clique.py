"""clique_*: signers and votes (json-rpc.md 5.7), and the signer metrics of Clique, IBFT 2.0 and QBFT."""

from __future__ import annotations

from ophion.consensus.signer_metrics import EmptyRange, signer_metrics
from ophion.primitives.header import HashedHeader
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import ZERO_ADDRESS, BlockTag
from ophion.rpc.errors import INTERNAL_ERROR, INVALID_REQUEST, invalid_params
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.schemas import AddressList, ProposalsResult, SignerMetricsResult
from ophion.rpc.schema.wire_types import AddressParam, BlockNumberParam, Boolean, BooleanParam, HashParam
from ophion.rpc.services.block_reference import header_at
from ophion.rpc.services.context import RpcContext


@method("clique_getSigners", needs={"chain", "clique"})
async def get_signers(ctx: RpcContext, block: BlockNumberParam = BlockTag.LATEST) -> AddressList:
    """Returns the signers that may sign the block after the given block, in ascending order."""
    return await _signers(ctx, header_at(ctx, block))


@method("clique_getSignersAtHash", needs={"chain", "clique"})
async def get_signers_at_hash(ctx: RpcContext, block_hash: HashParam) -> AddressList:
    """Returns the signers that may sign the block after the given block, in ascending order."""
    return await _signers(ctx, ctx.queries.header(block_hash))


async def _signers(ctx: RpcContext, header: HashedHeader | None) -> list[str]:
    if header is None:
        raise INTERNAL_ERROR("there is no such block")
    # use a worker thread, because the signers of an old block need many earlier headers
    queries = ctx.queries
    found = await ctx.lanes.read.run(lambda: queries.engine.members(header, queries.chain))
    return [data(signer) for signer in found]


@method("clique_propose", needs={"clique"})
def propose(ctx: RpcContext, address: AddressParam, adds: BooleanParam) -> Boolean:
    """Votes to add (true) or remove (false) a signer, in the blocks of this node, until the vote is discarded."""
    if address == ZERO_ADDRESS:
        raise INVALID_REQUEST("the zero address cannot be voted on")
    assert ctx.clique is not None
    ctx.clique.propose(address, adds)
    return True


@method("clique_discard", needs={"clique"})
def discard(ctx: RpcContext, address: AddressParam) -> Boolean:
    """Discards this node's vote on an address."""
    assert ctx.clique is not None
    ctx.clique.discard(address)
    return True


@method("clique_proposals", needs={"clique"})
def proposals(ctx: RpcContext) -> ProposalsResult:
    """Returns the votes of this node: true to add an address, false to remove it."""
    assert ctx.clique is not None
    return {data(address): adds for address, adds in ctx.clique.pending().items()}


@method("clique_getSignerMetrics", needs={"chain", "clique"})
@method("ibft_getSignerMetrics", needs={"chain", "ibft"})
@method("qbft_getSignerMetrics", needs={"chain", "qbft"})
async def get_signer_metrics(
    ctx: RpcContext, first: BlockNumberParam | None = None, last: BlockNumberParam | None = None
) -> SignerMetricsResult:
    """Returns the number of blocks of each proposer, from block `first` to the block before `last`.

    Validators without blocks are listed with 0. The default range is the hundred blocks before the newest block.
    """
    queries = ctx.queries
    start, end = _number(ctx, first), _number(ctx, last)
    if start is not None and start < 0:
        raise invalid_params("the first block is negative")
    try:
        found = await ctx.lanes.read.run(
            lambda: signer_metrics(queries.engine, queries.chain, queries.head_number, start, end)
        )
    except EmptyRange as error:
        raise invalid_params(error.message) from None
    return [
        {
            "address": data(one.address),
            "proposedBlockCount": quantity(one.blocks),
            "lastProposedBlockNumber": quantity(one.last_block),
        }
        for one in found
    ]


def _number(ctx: RpcContext, block: BlockTag | int | None) -> int | None:
    if not isinstance(block, BlockTag):
        return block
    found = ctx.queries.header(block)
    return None if found is None else found.number
