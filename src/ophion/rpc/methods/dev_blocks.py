"""Mining, rollback and reset of development nodes (evm_*, anvil_*, hardhat_*)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson
from msgspec.structs import replace

from ophion.dev.cheat_codes import DevNode
from ophion.dev.clock import TimestampTooLow
from ophion.errors import RpcError
from ophion.primitives.hexcodec import data
from ophion.rpc.errors import INVALID_PARAMS_CODE, invalid_params
from ophion.rpc.schema.wire_types import Boolean, DataParam, Text, decode_data
from ophion.rpc.services.cheat_code_params import (
    AnyParam,
    FlagParam,
    Json,
    Nothing,
    NumberParam,
    cheat_code,
    check_time,
    decode_number,
    dev_of,
    too_low,
)
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.transaction_request import decode_transaction_request, filled

if TYPE_CHECKING:
    from ophion.dev.fork.remote_state import Fork

_MAX_BLOCKS = 10_000_000


# --- mining --------------------------------------------------------------------------------------


@cheat_code("evm_mine")
async def mine_one(ctx: RpcContext, options: AnyParam | None = None) -> Text:
    """Mines one block, or `blocks` blocks. A number, or the key `timestamp`, sets the block timestamp."""
    first, *others = _timestamps(options) or (None,)
    await _mine_at(dev_of(ctx), first)
    if others:
        await dev_of(ctx).mine(len(others))
    return "0" if ctx.is_hardhat else "0x0"


@cheat_code("evm_mine_detailed", "anvil_mine_detailed")
async def mine_detailed(ctx: RpcContext, options: AnyParam | None = None) -> Json:
    """Mines blocks like `evm_mine`, and returns the blocks with their transactions."""
    mined = []
    for timestamp in _timestamps(options):
        await _mine_at(dev_of(ctx), timestamp)
        text = ctx.queries.store.block_json(ctx.queries.head_hash, True, ctx.queries.with_total_difficulty)
        mined.append(orjson.loads(text or b"null"))
    return mined


async def _mine_at(dev: DevNode, timestamp: int | None) -> None:
    try:
        await dev.mine_at(timestamp)
    except TimestampTooLow as error:
        raise too_low(dev, error) from None


def _timestamps(options: Any) -> list[int | None]:
    if not isinstance(options, dict):
        return [None if options is None else check_time(decode_number(options))]
    given = options.get("timestamp")
    count = decode_number(options.get("blocks") or 1)
    if count > _MAX_BLOCKS:
        raise invalid_params(f"blocks: at most {_MAX_BLOCKS} are expected")
    return [None if given is None else check_time(decode_number(given)), *[None] * (count - 1)][:count]


@cheat_code("anvil_mine", "hardhat_mine")
async def mine(ctx: RpcContext, count: NumberParam | None = None, interval: NumberParam | None = None) -> Nothing:
    """Mines blocks, `interval` seconds apart if given."""
    count = 1 if count is None else count
    if count > _MAX_BLOCKS:
        raise invalid_params(f"blocks: at most {_MAX_BLOCKS} are expected")
    dev = dev_of(ctx)
    if ctx.is_hardhat and interval is None:
        interval = 1
    if count:
        await dev.mine(count, None if interval is None else check_time(interval), is_first_normal=ctx.is_hardhat)


@cheat_code("anvil_getAutomine", "hardhat_getAutomine")
def get_automine(ctx: RpcContext) -> Boolean:
    """Returns whether each transaction is mined at once."""
    return dev_of(ctx).sealer.is_automatic


@cheat_code("evm_setAutomine", "anvil_setAutomine")
def set_automine(ctx: RpcContext, is_on: FlagParam) -> Nothing:
    """Enables or disables automine. Without automine, blocks are mined only at an interval or on demand."""
    dev_of(ctx).set_automine(is_on)


@cheat_code("evm_setIntervalMining", "anvil_setIntervalMining")
def set_interval_mining(ctx: RpcContext, interval: AnyParam) -> Nothing:
    """Mines a block at this interval in seconds (milliseconds with the preset `hardhat`). 0 ends interval mining."""
    dev = dev_of(ctx)
    if isinstance(interval, list) and len(interval) == 2:
        interval = interval[0]
    seconds = check_time(decode_number(interval)) / (1000 if ctx.is_hardhat else 1)
    if ctx.is_hardhat:
        dev.sealer.set_mode(dev.sealer.is_automatic, seconds)
    else:
        dev.set_interval(seconds)


@cheat_code("anvil_getIntervalMining")
def get_interval_mining(ctx: RpcContext) -> Json:
    """Returns the seconds between blocks; null if interval mining is off."""
    return int(dev_of(ctx).sealer.interval_s) or None


# --- rollback and reset --------------------------------------------------------------------------


@cheat_code("anvil_rollback")
async def rollback(ctx: RpcContext, depth: NumberParam | None = None) -> Nothing:
    """Removes the last block, or the last `depth` blocks, from the chain."""
    depth = 1 if depth is None else depth
    _check_depth(ctx, depth)
    await dev_of(ctx).rollback(depth)


@cheat_code("anvil_reorg")
async def reorg(ctx: RpcContext, options: AnyParam, pairs: AnyParam | None = None) -> Nothing:
    """Replaces the last `depth` blocks by as many new blocks with the given transactions (`tx_block_pairs`)."""
    dev = dev_of(ctx)
    if isinstance(options, dict):
        depth = decode_number(options.get("depth", 0))
        pairs = options.get("txBlockPairs", options.get("tx_block_pairs")) or []
    else:
        depth, pairs = decode_number(options), pairs or []
    _check_depth(ctx, depth)
    blocks: list[list[Any]] = [[] for _ in range(depth)]
    if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise invalid_params("txBlockPairs: a list of [transaction, block] is expected")
    for given, position in pairs:
        position = decode_number(position)
        if position >= depth:
            raise invalid_params(f"txBlockPairs: block {position} is not below the depth {depth}")
        if isinstance(given, str):
            blocks[position].append(await _decoded(decode_data(given)))
        else:
            request = decode_transaction_request(given)
            unsigned = await filled(ctx, request)
            key = None if ctx.accounts is None else ctx.accounts.get(request.sender)
            raw = None if key is None else unsigned.signed_by(key)
            blocks[position].append(dev.unsigned(unsigned, request.sender) if raw is None else await _decoded(raw))
    await dev.reorg(depth, [tuple(one) for one in blocks])


async def _decoded(raw: bytes) -> Any:
    from ophion.native.transactions import decode_transactions

    one = decode_transactions([raw])[0]
    if isinstance(one, str):
        raise invalid_params(f"transaction: {one}")
    return one


def _check_depth(ctx: RpcContext, depth: int) -> None:
    height = ctx.queries.head_number
    if depth > height:
        raise RpcError(
            INVALID_PARAMS_CODE,
            f"Rollback depth must not exceed current chain height: current height {height}, depth {depth}",
        )


@cheat_code("anvil_reset", "hardhat_reset")
async def reset(ctx: RpcContext, options: AnyParam | None = None) -> Nothing:
    """Resets the chain to its first block, or to a block of another chain (`forking`: `jsonRpcUrl`, `blockNumber`)."""
    dev = dev_of(ctx)
    given = options.get("forking", options) if isinstance(options, dict) else options
    if given is None:
        await dev.reset()
        return
    if not isinstance(given, dict):
        raise invalid_params("forking: an object with jsonRpcUrl and blockNumber is expected")
    url, number = given.get("jsonRpcUrl"), given.get("blockNumber")
    if url is None and number is None:
        await dev.reset()
        return
    await dev.reset(await _opened(dev, url, None if number is None else decode_number(number)))


async def _opened(dev: DevNode, url: object, number: int | None) -> Fork:
    """Open the fork that a reset request names.

    Settings missing from the request come from the current fork, except the block number.
    """
    from ophion.dev.fork.remote_state import Fork
    from ophion.dev.fork.settings import ForkSettings

    known = None if dev.fork is None else dev.fork.settings
    if url is None and known is None:
        raise invalid_params("forking: jsonRpcUrl is missing, and this node forks no chain yet")
    if url is not None and not isinstance(url, str):
        raise invalid_params("forking: jsonRpcUrl is not a text")
    settings = ForkSettings(str(url)) if known is None else replace(known, block_number=None)
    if url is not None:
        address, named = ForkSettings.split(url)
        settings = replace(settings, url=address, block_number=named)
    if number is not None:
        settings = replace(settings, block_number=number)
    return await asyncio.to_thread(Fork.open, settings)


@cheat_code("anvil_dumpState", "hardhat_dumpState")
async def dump_state(ctx: RpcContext, with_history: AnyParam | None = None) -> Text:
    """Returns all accounts and blocks in Anvil's format: hexadecimal of compressed JSON, for `anvil_loadState`."""
    from ophion.dev.state_dump import dump, encode_dump

    dev = dev_of(ctx)
    async with dev.sealer.head_lock:
        return data(await ctx.lanes.read.run(lambda: encode_dump(dump(dev))))


@cheat_code("anvil_loadState", "hardhat_loadState")
async def load_state(ctx: RpcContext, state: DataParam) -> Boolean:
    """Loads the blocks of a dump, and its accounts into the current state; returns true."""
    from ophion.dev.state_dump import BadStateFile, decode_dump, load

    try:
        await load(dev_of(ctx), decode_dump(state))
    except BadStateFile as error:
        raise invalid_params(error.message) from None
    return True
