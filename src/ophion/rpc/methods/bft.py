"""ibft_* and qbft_*: validators, votes and consensus status (json-rpc.md 5.8 and 7.1, consensus.md 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ophion.primitives.header import HashedHeader
from ophion.primitives.hexcodec import data
from ophion.primitives.types import Address, BlockTag
from ophion.rpc.errors import METHOD_NOT_ENABLED
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.schemas import (
    AddressList,
    ConsensusStatusResult,
    ProposalsResult,
    SecondsResult,
)
from ophion.rpc.schema.wire_types import AddressParam, BlockNumberParam, Boolean, BooleanParam, HashParam
from ophion.rpc.services.block_reference import header_at
from ophion.rpc.services.context import RpcContext

if TYPE_CHECKING:
    from ophion.consensus.validator_votes import LocalProposals
    from ophion.producer.bft_driver import BftDriver


@method("ibft_getValidatorsByBlockNumber", needs={"chain", "ibft"})
async def ibft_validators(ctx: RpcContext, block: BlockNumberParam) -> AddressList | None:
    """Returns the validators in the header of a block; null if the block is unknown."""
    return await _validators(ctx, header_at(ctx, block))


@method("qbft_getValidatorsByBlockNumber", needs={"chain", "qbft"})
async def qbft_validators(ctx: RpcContext, block: BlockNumberParam) -> AddressList | None:
    """Returns the validators of a block; for `pending`, the validators of the next block.

    On networks with a validator contract, reads the contract at that block. Null if the block is unknown.
    """
    if block is BlockTag.PENDING:
        return await _addresses(ctx, lambda: _driver(ctx).engine.members(ctx.queries.head, ctx.queries.chain))
    return await _validators(ctx, header_at(ctx, block))


@method("ibft_getValidatorsByBlockHash", needs={"chain", "ibft"})
@method("qbft_getValidatorsByBlockHash", needs={"chain", "qbft"})
async def validators_by_hash(ctx: RpcContext, block_hash: HashParam) -> AddressList | None:
    """Returns the validators of a block; null if the block is unknown."""
    return await _validators(ctx, ctx.queries.header(block_hash))


@method("ibft_proposeValidatorVote", needs={"ibft"})
@method("qbft_proposeValidatorVote", needs={"qbft"})
def propose(ctx: RpcContext, address: AddressParam, adds: BooleanParam) -> Boolean:
    """Votes to add (true) or remove (false) a validator, in the blocks of this node, until the vote is discarded.

    Not enabled on networks with a validator contract.
    """
    _proposals(ctx).propose(address, adds)
    return True


@method("ibft_discardValidatorVote", needs={"ibft"})
@method("qbft_discardValidatorVote", needs={"qbft"})
def discard(ctx: RpcContext, address: AddressParam) -> Boolean:
    """Discards this node's vote on an address. Not enabled on networks with a validator contract."""
    _proposals(ctx).discard(address)
    return True


@method("ibft_getPendingVotes", needs={"ibft"})
@method("qbft_getPendingVotes", needs={"qbft"})
def pending(ctx: RpcContext) -> ProposalsResult:
    """Returns the votes of this node: true to add an address, false to remove it.

    Not enabled on networks with a validator contract.
    """
    return {data(address): adds for address, adds in _proposals(ctx).pending().items()}


@method("qbft_getRequestTimeoutSeconds", needs={"qbft"})
def qbft_timeout(ctx: RpcContext) -> SecondsResult:
    """Returns the duration of round 0 in seconds, from the genesis file. Each further round takes twice as long."""
    era = _driver(ctx).engine.schedule.era(ctx.queries.head_number + 1)
    return era.parameters.request_timeout_s


@method("ibft_getStatus", needs={"ibft"})
@method("qbft_getStatus", needs={"qbft"})
def status(ctx: RpcContext) -> ConsensusStatusResult:
    """Returns the state of consensus: the validators whose messages are missing, and what prevents progress."""
    return _driver(ctx).status().as_object()


def _driver(ctx: RpcContext) -> BftDriver:
    """Return the consensus driver; IBFT 2.0 and QBFT share one class."""
    driver = ctx.ibft if ctx.qbft is None else ctx.qbft
    assert driver is not None, "methods are bound only where their service is"
    return driver


async def _validators(ctx: RpcContext, header: HashedHeader | None) -> list[str] | None:
    if header is None:
        return None
    found = await _addresses(ctx, lambda: _driver(ctx).engine.validators_of(header, ctx.queries.chain))
    # a genesis block may list its validators in any order: Besu sorts them with QBFT, and not with IBFT 2.0
    return found if ctx.qbft is None else sorted(found)


async def _addresses(ctx: RpcContext, find: Callable[[], Sequence[Address]]) -> list[str]:
    """Return the addresses that `find` finds. Runs `find` in a worker thread, because `find` may call a contract or
    read many headers.
    """
    return [data(address) for address in await ctx.lanes.read.run(find)]


def _proposals(ctx: RpcContext) -> LocalProposals:
    """Return the votes of this node. Raises an error if a contract defines the validators."""
    driver = _driver(ctx)
    if not driver.engine.has_votes(ctx.queries.head):
        raise METHOD_NOT_ENABLED()
    return driver.proposals
