"""Time of development nodes (evm_*, anvil_*, hardhat_*)."""

from __future__ import annotations

from ophion.dev.clock import TimestampTooLow
from ophion.rpc.schema.wire_types import Boolean
from ophion.rpc.services.cheat_code_params import (
    AnyParam,
    Integer,
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


@cheat_code("evm_increaseTime", "anvil_increaseTime")
def increase_time(ctx: RpcContext, seconds: AnyParam) -> Json:
    """Moves the chain's clock forward; returns the seconds by which this clock is ahead of the wall clock."""
    dev = dev_of(ctx)
    is_negative = type(seconds) is int and seconds < 0
    total = dev.clock.increase(
        -check_time(decode_number(-seconds)) if is_negative else check_time(decode_number(seconds))
    )
    dev.announce()
    return str(total) if ctx.is_hardhat else total


@cheat_code("evm_setNextBlockTimestamp", "anvil_setNextBlockTimestamp")
def set_next_timestamp(ctx: RpcContext, timestamp: NumberParam) -> Json:
    """Sets the timestamp of the next block. The timestamps of later blocks continue from this time."""
    dev = dev_of(ctx)
    try:
        dev.set_next_timestamp(check_time(timestamp), allow_equal=not ctx.is_hardhat)
    except TimestampTooLow as error:
        raise too_low(dev, error) from None
    return str(timestamp) if ctx.is_hardhat else None


@cheat_code("evm_setTime", "anvil_setTime")
def set_time(ctx: RpcContext, timestamp: NumberParam) -> Integer:
    """Sets the time of the chain's clock; returns the seconds by which the clock has moved forward.

    A number too large for seconds is read as milliseconds. The clock may go back. Blocks then keep the timestamp of
    the head until the clock is past it.
    """
    dev = dev_of(ctx)
    moved = dev.clock.set_time(check_time(timestamp // 1000 if timestamp > 100_000_000_000 else timestamp))
    dev.announce()
    return moved


@cheat_code("anvil_setBlockTimestampInterval")
def set_timestamp_interval(ctx: RpcContext, seconds: NumberParam) -> Nothing:
    """Sets a fixed number of seconds between the timestamps of a block and its parent."""
    dev = dev_of(ctx)
    dev.clock.interval = check_time(seconds)
    dev.announce()


@cheat_code("anvil_removeBlockTimestampInterval")
def remove_timestamp_interval(ctx: RpcContext) -> Boolean:
    """Removes the fixed interval, so that timestamps follow the clock. Returns false if no interval was set."""
    dev = dev_of(ctx)
    had_one, dev.clock.interval = dev.clock.interval is not None, None
    dev.announce()
    return had_one


@cheat_code("anvil_getGenesisTime")
def genesis_time(ctx: RpcContext) -> Integer:
    """Returns the timestamp of the first block."""
    return dev_of(ctx).chain.genesis.timestamp
