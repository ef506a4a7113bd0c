"""ibft_* and qbft_*: validators, votes and the state of consensus (json-rpc.md 5.8 and 7.1, consensus.md 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ophion.primitives.block import HashedHeader
from ophion.primitives.hexcodec import data
from ophion.primitives.types import Address, BlockTag
from ophion.rpc.errors import METHOD_NOT_ENABLED
from ophion.rpc.language.registry import method
from ophion.rpc.language.schemas import (
    AddressList,
    ConsensusStatusResult,
    ProposalsResult,
    SecondsResult,
    SignerMetricsResult,
)
from ophion.rpc.language.wire_types import AddressParam, BlockNumberParam, Boolean, BooleanParam, HashParam
from ophion.rpc.methods.poa import metrics_of
from ophion.rpc.questions.blocks import header_at
from ophion.rpc.questions.context import RpcContext

if TYPE_CHECKING:
    from ophion.consensus.voting import LocalProposals
    from ophion.producer.bft_driver import BftDriver


@method("ibft_getValidatorsByBlockNumber", needs={"chain", "ibft"})
async def ibft_validators(ctx: RpcContext, block: BlockNumberParam) -> AddressList | None:
    """The validators that made a block, as its header lists them; null when there is no such block."""
    return await _validators(ctx, ctx.ibft, header_at(ctx, block))


@method("qbft_getValidatorsByBlockNumber", needs={"chain", "qbft"})
async def qbft_validators(ctx: RpcContext, block: BlockNumberParam) -> AddressList | None:
    """The validators that made a block; for `pending` those that will make the next one.

    Where a contract names them, what it says at that block. Null when there is no such block.
    """
    driver = _there(ctx.qbft)
    if block is BlockTag.PENDING:
        return await _addresses(ctx, lambda: driver.engine.members(ctx.queries.head, ctx.queries.chain))
    return await _validators(ctx, driver, header_at(ctx, block))


@method("ibft_getValidatorsByBlockHash", needs={"chain", "ibft"})
async def ibft_validators_by_hash(ctx: RpcContext, block_hash: HashParam) -> AddressList | None:
    """The validators that made a block, as its header lists them; null when there is no such block."""
    return await _validators(ctx, ctx.ibft, ctx.queries.header(block_hash))


@method("qbft_getValidatorsByBlockHash", needs={"chain", "qbft"})
async def qbft_validators_by_hash(ctx: RpcContext, block_hash: HashParam) -> AddressList | None:
    """The validators that made a block; null when there is no such block."""
    return await _validators(ctx, ctx.qbft, ctx.queries.header(block_hash))


@method("ibft_proposeValidatorVote", needs={"ibft"})
def ibft_propose(ctx: RpcContext, address: AddressParam, adds: BooleanParam) -> Boolean:
    """Vote to add a validator (true) or to remove one (false) in blocks of this node, until discarded."""
    return _propose(ctx, ctx.ibft, address, adds)


@method("qbft_proposeValidatorVote", needs={"qbft"})
def qbft_propose(ctx: RpcContext, address: AddressParam, adds: BooleanParam) -> Boolean:
    """Vote to add a validator (true) or to remove one (false) in blocks of this node, until discarded.

    Not enabled where a contract names the validators.
    """
    return _propose(ctx, ctx.qbft, address, adds)


@method("ibft_discardValidatorVote", needs={"ibft"})
def ibft_discard(ctx: RpcContext, address: AddressParam) -> Boolean:
    """Vote on an address no more."""
    return _discard(ctx, ctx.ibft, address)


@method("qbft_discardValidatorVote", needs={"qbft"})
def qbft_discard(ctx: RpcContext, address: AddressParam) -> Boolean:
    """Vote on an address no more; not enabled where a contract names the validators."""
    return _discard(ctx, ctx.qbft, address)


@method("ibft_getPendingVotes", needs={"ibft"})
def ibft_pending(ctx: RpcContext) -> ProposalsResult:
    """What this node votes for: true to add an address, false to remove it."""
    return _pending(ctx, ctx.ibft)


@method("qbft_getPendingVotes", needs={"qbft"})
def qbft_pending(ctx: RpcContext) -> ProposalsResult:
    """What this node votes for: true to add an address, false to remove it.

    Not enabled where a contract names the validators.
    """
    return _pending(ctx, ctx.qbft)


@method("ibft_getSignerMetrics", needs={"chain", "ibft"})
async def ibft_metrics(
    ctx: RpcContext, first: BlockNumberParam | None = None, last: BlockNumberParam | None = None
) -> SignerMetricsResult:
    """Blocks by proposer from `first` up to, not including, `last`; validators without any are listed with zero.

    Without parameters the last hundred blocks before the newest.
    """
    return await metrics_of(ctx, first, last)


@method("qbft_getSignerMetrics", needs={"chain", "qbft"})
async def qbft_metrics(
    ctx: RpcContext, first: BlockNumberParam | None = None, last: BlockNumberParam | None = None
) -> SignerMetricsResult:
    """Blocks by proposer from `first` up to, not including, `last`; validators without any are listed with zero.

    Without parameters the last hundred blocks before the newest.
    """
    return await metrics_of(ctx, first, last)


@method("qbft_getRequestTimeoutSeconds", needs={"qbft"})
def qbft_timeout(ctx: RpcContext) -> SecondsResult:
    """Length of round 0 in seconds, as the genesis file gives it; each further round is twice as long."""
    era = _there(ctx.qbft).engine.schedule.era(ctx.queries.head_number + 1)
    return era.parameters.request_timeout_s


@method("ibft_getStatus", needs={"ibft"})
def ibft_status(ctx: RpcContext) -> ConsensusStatusResult:
    """What consensus is doing at this moment, whose messages are missing, and in plain words what blocks progress."""
    return _there(ctx.ibft).status().as_object()


@method("qbft_getStatus", needs={"qbft"})
def qbft_status(ctx: RpcContext) -> ConsensusStatusResult:
    """What consensus is doing at this moment, whose messages are missing, and in plain words what blocks progress."""
    return _there(ctx.qbft).status().as_object()


# --- what both share ----------------------------------------------------------------------------


def _there(driver: BftDriver | None) -> BftDriver:
    assert driver is not None, "methods are bound only where their service is"
    return driver


async def _validators(ctx: RpcContext, driver: BftDriver | None, header: HashedHeader | None) -> list[str] | None:
    if header is None:
        return None
    return await _addresses(ctx, lambda: _there(driver).engine.validators_of(header, ctx.queries.chain))


async def _addresses(ctx: RpcContext, find: Callable[[], Sequence[Address]]) -> list[str]:
    """Validators may be the answer of a contract, or folded from many headers: no work for the event loop."""
    return [data(address) for address in await ctx.lanes.read.run(find)]


def _proposals(ctx: RpcContext, driver: BftDriver | None) -> LocalProposals:
    """The votes of this node, where there is anything to vote on."""
    if not _there(driver).engine.has_votes(ctx.queries.head):
        raise METHOD_NOT_ENABLED()
    return _there(driver).proposals


def _propose(ctx: RpcContext, driver: BftDriver | None, address: Address, adds: bool) -> bool:
    _proposals(ctx, driver).propose(address, adds)
    return True


def _discard(ctx: RpcContext, driver: BftDriver | None, address: Address) -> bool:
    _proposals(ctx, driver).discard(address)
    return True


def _pending(ctx: RpcContext, driver: BftDriver | None) -> dict[str, Any]:
    return {data(address): adds for address, adds in _proposals(ctx, driver).pending().items()}
