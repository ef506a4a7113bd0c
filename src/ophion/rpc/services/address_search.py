"""Finds the transactions that touch an address, and the creation of a contract, by re-executing blocks.

The node has no index of addresses. A search traces ranges of blocks until a page is full or the request times out.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import orjson
from msgspec import Struct

from ophion.native.tracing import TraceStream, trace_flat
from ophion.primitives.header import HashedHeader
from ophion.primitives.hexcodec import data
from ophion.primitives.types import EMPTY_TRIE_ROOT, Address, Hash32
from ophion.rpc.errors import STATE_UNAVAILABLE, TIMEOUT_EXPIRED
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.tracing import traced_block, whole_trace

_BLOCKS_PER_TRACE: Final = 64
_BLOCKS_PER_LOOK: Final = 256
"""The search checks its deadline each time it has searched this many blocks."""
_EVERYTHING: Final = (1 << 64) - 1


class AddressPage(Struct, frozen=True):
    """Transactions that touch an address, newest first, and whether newer or older transactions may follow."""

    hashes: Sequence[str]
    is_newest: bool
    is_oldest: bool


async def transactions_before(ctx: RpcContext, address: Address, block: int, size: int) -> AddressPage:
    """Search the blocks below `block` (0: all blocks), newest first, for at least `size` transactions. A page ends
    after a whole block.
    """
    above = ctx.queries.head_number + 1
    found, is_end = await _search(ctx, address, range(min(block or above, above) - 1, 0, -1), size)
    return AddressPage([one for _, hashes in found for one in reversed(hashes)], block == 0, is_end)


async def transactions_after(ctx: RpcContext, address: Address, block: int, size: int) -> AddressPage:
    """Search the blocks above `block` (0: all blocks), oldest first, for at least `size` transactions. A page ends
    after a whole block.
    """
    found, is_end = await _search(ctx, address, range(block + 1, ctx.queries.head_number + 1), size)
    newest_first = [one for _, hashes in reversed(found) for one in reversed(hashes)]
    return AddressPage(newest_first, is_end, block == 0)


async def creation_of(ctx: RpcContext, contract: Address) -> tuple[str, str] | None:
    """Return transaction hash and creator of a contract; None for an account without code and for genesis contracts.

    Finds the creation block, which is the first block with the code, by bisection.
    """
    number = await ctx.lanes.read.run(lambda: _first_with_code(ctx, contract))
    if not number:
        return None
    for entry in await _entries(ctx, [number], (), ()):
        if entry["type"] == "create" and (entry.get("result") or {}).get("address") == data(contract):
            return entry["transactionHash"], entry["action"]["from"]
    return None


def _first_with_code(ctx: RpcContext, contract: Address) -> int | None:
    """Return the first block with a stored state in which the account has code; None if it has no code at the head."""
    low, high = 0, ctx.queries.head_number
    if not ctx.queries.head_state.code(contract):
        return None
    while low < high:
        middle = (low + high) // 2
        view = ctx.queries.view(middle)
        if view is not None and view.state.code(contract):
            high = middle
        else:
            low = middle + 1
    return low


async def _search(
    ctx: RpcContext, address: Address, numbers: range, size: int
) -> tuple[list[tuple[int, list[str]]], bool]:
    """Return the blocks found, each with the hashes of its transactions that touch the address, and whether the search
    is complete.
    """
    deadline = time.monotonic() + ctx.limits.timeout_s
    found: list[tuple[int, list[str]]] = []
    total = 0
    # if the address is a contract, find the transaction that created it, because a search by sender and recipient does
    # not find this transaction
    creation = await creation_of(ctx, address)
    created = None if creation is None else ctx.queries.transaction_position(Hash32(bytes.fromhex(creation[0][2:])))
    left = iter(numbers)
    while part := await ctx.lanes.read.run(partial(_next_blocks, ctx, left, deadline)):
        by_block: dict[int, dict[int, str]] = {number: {} for number in part}
        for senders, recipients in (((address,), ()), ((), (address,))):
            for entry in await _entries(ctx, part, senders, recipients):
                if entry["transactionHash"] is not None:
                    by_block[entry["blockNumber"]][entry["transactionPosition"]] = entry["transactionHash"]
        if creation is not None and created is not None and created[1] in by_block:
            by_block[created[1]][created[2]] = creation[0]
        for number in part:
            if not by_block[number]:
                continue
            if total >= size:
                return found, False
            hashes = [by_block[number][index] for index in sorted(by_block[number])]
            found.append((number, hashes))
            total += len(hashes)
    return found, True


def _next_blocks(ctx: RpcContext, numbers: Iterator[int], deadline: float) -> list[int]:
    """Return the next blocks with transactions, which are traced together. An empty list ends the search. Raises
    `RpcError` after the deadline.
    """
    found: list[int] = []
    for number in numbers:
        if number % _BLOCKS_PER_LOOK == 0 and time.monotonic() > deadline:
            raise TIMEOUT_EXPIRED()
        header = ctx.queries.chain.canonical(number)
        if header is not None and header.header.transactions_root != EMPTY_TRIE_ROOT:
            found.append(number)
        if len(found) == _BLOCKS_PER_TRACE:
            break
    if time.monotonic() > deadline:
        raise TIMEOUT_EXPIRED()
    return found


async def _entries(
    ctx: RpcContext, numbers: Sequence[int], senders: Sequence[Address], recipients: Sequence[Address]
) -> list[dict[str, Any]]:
    def start() -> TraceStream:
        headers: list[HashedHeader | None] = [ctx.queries.chain.canonical(number) for number in numbers]
        blocks = [traced_block(ctx, header) for header in headers]
        return trace_flat(blocks, None, senders, recipients, 0, _EVERYTHING, None, ctx.limits.timeout_s)

    text = await whole_trace(ctx, start)
    if text is None:
        raise STATE_UNAVAILABLE()
    entries: list[dict[str, Any]] = orjson.loads(text)
    return entries
