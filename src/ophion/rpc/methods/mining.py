"""miner_* and methods of eth_* about block production (json-rpc.md 5.3, 5.10, 6, 7.1)."""

from __future__ import annotations

from ophion.primitives.hexcodec import data
from ophion.producer.mining_control import CoinbaseFixed, CoinbaseNotSet
from ophion.rpc.errors import COINBASE_NOT_SET, COINBASE_UNKNOWN, INVALID_REQUEST, NO_WORK, invalid_params
from ophion.rpc.schema.registry import Example, method
from ophion.rpc.schema.schemas import WorkResult
from ophion.rpc.schema.wire_types import (
    AddressParam,
    AddressResult,
    Boolean,
    Data,
    DataParam,
    HashParam,
    Quantity,
    QuantityParam,
)
from ophion.rpc.services.context import RpcContext

_NONCE_BYTES = 8
_MAX_FEE_BITS = 96


@method("eth_coinbase", needs={"mining"})
def coinbase(ctx: RpcContext) -> AddressResult:
    """Returns the account that receives the rewards of this node; under proof of authority, the node's address."""
    address = ctx.mining.coinbase
    if address is None:
        raise COINBASE_UNKNOWN()
    return address


@method("eth_mining", needs={"mining"}, examples=[Example([], False)])
def mining(ctx: RpcContext) -> Boolean:
    """Returns whether this node produces blocks.

    Returns false after `miner_stop` and while the node is far behind its network. With IBFT 2.0 and QBFT, Pantheon 1.2
    always returns true.
    """
    return ctx.mining.is_mining


@method("eth_hashrate", needs={"mining"}, examples=[Example([], "0x0")])
def hashrate(ctx: RpcContext) -> Quantity:
    """Returns the hashes per second of this node, plus the rates that external miners report."""
    return ctx.mining.hashrate


@method("eth_getWork", needs={"mining"})
async def get_work(ctx: RpcContext) -> WorkResult:
    """Returns work for an external miner: the hash to seal, the seed of the epoch, and the target."""
    work = await ctx.mining.get_work()
    if work is None:
        raise NO_WORK()
    return [data(work.seal_hash), data(work.seed_hash), data(work.target)]


@method("eth_submitWork", needs={"mining"})
async def submit_work(ctx: RpcContext, nonce: DataParam, seal_hash: HashParam, mix_hash: HashParam) -> Boolean:
    """Submits a nonce of an external miner. Returns true if the nonce is valid and sealed a block."""
    if len(nonce) != _NONCE_BYTES:
        raise invalid_params("nonce: exactly 8 bytes are expected")
    return await ctx.mining.submit_work(int.from_bytes(nonce, "big"), seal_hash, mix_hash)


@method("eth_submitHashrate", needs={"mining"})
def submit_hashrate(ctx: RpcContext, rate: QuantityParam, miner: HashParam) -> Boolean:
    """Reports the hash rate of an external miner; `miner` is an id that the miner chooses."""
    return ctx.mining.submit_hashrate(rate, miner)


@method("miner_start", needs={"mining"})
def start(ctx: RpcContext) -> Boolean:
    """Starts block production. Returns true, even if block production was already running."""
    try:
        ctx.mining.start()
    except CoinbaseNotSet:
        raise COINBASE_NOT_SET() from None
    return True


@method("miner_stop", needs={"mining"}, examples=[Example([], True)])
def stop(ctx: RpcContext) -> Boolean:
    """Stops block production. Returns true, even if block production was already stopped."""
    ctx.mining.stop()
    return True


@method("miner_setCoinbase", aliases=["miner_setEtherbase"], needs={"mining"})
def set_coinbase(ctx: RpcContext, address: AddressParam) -> Boolean:
    """Sets the account that receives the rewards, from the next block on. Refused under proof of authority."""
    try:
        ctx.mining.set_coinbase(address)
    except CoinbaseFixed as error:
        raise INVALID_REQUEST(error.message) from None
    return True


@method("miner_changeTargetGasLimit", needs={"mining"})
def change_target_gas_limit(ctx: RpcContext, gas_limit: QuantityParam) -> Boolean:
    """Sets the target gas limit of this node's blocks.

    The gas limit of each block moves towards the target as far as the protocol allows.
    """
    if not 5000 <= gas_limit < 2**63:
        raise invalid_params("gasLimit: a value from 5000 on is expected")
    ctx.mining.set_target_gas_limit(gas_limit)
    return True


@method("miner_getMinGasPrice", needs={"mining"}, examples=[Example([], "0x3e8")])
def get_min_gas_price(ctx: RpcContext) -> Quantity:
    """Returns the minimum gas price that this node accepts, in wei."""
    return ctx.mining.floor.min_gas_price


@method("miner_setMinGasPrice", needs={"mining"})
def set_min_gas_price(ctx: RpcContext, price: QuantityParam) -> Boolean:
    """Sets the minimum gas price for pool and blocks of this node."""
    ctx.mining.floor.min_gas_price = _possible(price)
    return True


@method("miner_getMinPriorityFee", needs={"mining"}, examples=[Example([], "0x0")])
def get_min_priority_fee(ctx: RpcContext) -> Quantity:
    """Returns the minimum priority fee that this node accepts, in wei per gas."""
    return ctx.mining.floor.min_priority_fee


@method("miner_setMinPriorityFee", needs={"mining"})
def set_min_priority_fee(ctx: RpcContext, fee: QuantityParam) -> Boolean:
    """Sets the minimum priority fee for pool and blocks of this node."""
    ctx.mining.floor.min_priority_fee = _possible(fee)
    return True


def _possible(fee: int) -> int:
    """Check that a minimum fee plus a base fee fits the 128 bits of a transaction's fee field."""
    if fee.bit_length() > _MAX_FEE_BITS:
        raise invalid_params(f"a fee of at most {_MAX_FEE_BITS} bits is expected")
    return fee


@method("miner_getExtraData", needs={"mining"}, examples=[Example([], "0x")])
def get_extra_data(ctx: RpcContext) -> Data:
    """Returns the extra data of this node's blocks."""
    return ctx.mining.extra_data


@method("miner_setExtraData", needs={"mining"})
def set_extra_data(ctx: RpcContext, extra_data: DataParam) -> Boolean:
    """Sets the extra data of this node's blocks; at most 32 bytes."""
    try:
        ctx.mining.set_extra_data(extra_data)
    except ValueError as error:
        raise invalid_params(str(error)) from None
    return True
