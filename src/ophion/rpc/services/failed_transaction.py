"""Reports a failed transaction to the client that sent it. Hardhat's node reports failures in the same way.

hardhat-ethers asks for `hardhat_metadata`. If the node answers, hardhat-ethers sends a fixed gas limit without an
estimate, and expects an error for a transaction that fails. With the preset `anvil`, only transactions with that gas
limit are reported. With Hardhat before 2.27, hardhat-ethers sets the gas limit of Anvil's blocks. Other libraries set
this limit too, so it counts only after a request for `hardhat_metadata`.
"""

from __future__ import annotations

from typing import Final

import orjson

from ophion.native.exceptions import NativeError
from ophion.native.tracing import TraceKind
from ophion.primitives.hexcodec import data
from ophion.primitives.types import Hash32
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.tracing import transaction_trace

HARDHAT_GAS: Final = 2**24
"""Gas limit that hardhat-ethers sets with Hardhat 2.27 and later."""
OLDER_HARDHAT_GAS: Final = 30_000_000
"""Gas limit that hardhat-ethers sets with Hardhat 2.26 and earlier."""
_TOP_CALL: Final = TraceKind.calls(only_top_call=True)


def is_reported(ctx: RpcContext, gas: int) -> bool:
    """Return whether the sender of a transaction with this gas limit expects an error for a failed transaction."""
    if ctx.dev is None or not ctx.is_anvil:
        return ctx.is_hardhat
    return gas == HARDHAT_GAS or (gas == OLDER_HARDHAT_GAS and ctx.dev.serves_hardhat)


async def raise_if_failed(ctx: RpcContext, hash: Hash32) -> None:
    """Raise Hardhat's error if the transaction is mined and has failed.

    With automine, wait for the block of the transaction first, because the pool may have answered before the block is
    made.
    """
    soon = ctx.mining.mined(hash) if ctx.pool.get(hash) is not None else None
    if soon is not None:
        await soon
    text = ctx.queries.store.receipt_json(hash, False)
    if text is None or orjson.loads(text).get("status") != "0x0":
        return
    # lazy import: most transactions succeed
    from ophion.rpc.services.hardhat_failures import failure_error

    output, halt = await _outcome(ctx, hash)
    raise failure_error(ctx, output, halt, {"txHash": data(hash)})


async def _outcome(ctx: RpcContext, hash: Hash32) -> tuple[bytes, str]:
    """Trace a failed transaction. Returns output and error of its outermost call."""
    try:
        found = await transaction_trace(ctx, hash, _TOP_CALL)
    except NativeError:
        found = None
    if found is None:
        return b"", ""
    frame = orjson.loads(found)
    return bytes.fromhex((frame.get("output") or "0x")[2:]), str(frame.get("error"))
