"""ots_*, erigon_*: methods of block explorers beside eth_* (Otterscan API level 8, Blockscout).

Results follow Otterscan's description. Anvil 1.7.1 differs in three places: it lists the outermost call as an internal
operation, omits creations in `ots_traceTransaction`, and pages a block from its first transaction.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Mapping
from typing import Annotated, Any, Final

import orjson

from ophion.chain.block import ommers_of
from ophion.native.tracing import TraceKind
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import BlockTag, Hash32
from ophion.rpc.errors import invalid_params
from ophion.rpc.methods.eth_blocks import get_transaction_by_sender_and_nonce
from ophion.rpc.schema.registry import Example, method
from ophion.rpc.schema.wire_types import (
    AddressParam,
    BlockNumberParam,
    BlockParam,
    Boolean,
    HashParam,
    IntegerParam,
    Text,
    object_result,
)
from ophion.rpc.services.address_search import AddressPage, creation_of, transactions_after, transactions_before
from ophion.rpc.services.block_reference import header_at, read_at
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.tracing import transaction_trace

API_LEVEL: Final = 8
MAX_PAGE: Final = 1000
_SELECTOR_CHARS: Final = 10
_NOT_OF_HEADER: Final = ("transactions", "uncles", "withdrawals", "size", "totalDifficulty")
_OPERATIONS: Final = {"CALL": 0, "SELFDESTRUCT": 1, "CREATE": 2, "CREATE2": 3}

JsonObject = Annotated[dict[str, Any], object_result("object", "JSON object", {"type": "object"})]
JsonList = Annotated[list[Any], object_result("list", "list of JSON objects", {"type": "array"})]
Level = Annotated[int, object_result("integer", "number", {"type": "integer"})]


@method("ots_getApiLevel", examples=[Example([], API_LEVEL)])
def get_api_level(ctx: RpcContext) -> Level:
    """Returns the level of Otterscan's interface that this node implements."""
    return API_LEVEL


@method("ots_hasCode", needs={"chain", "state"})
def has_code(
    ctx: RpcContext, address: AddressParam, block: BlockParam = BlockTag.LATEST
) -> Boolean | Awaitable[Boolean | None] | None:
    """Returns whether an account has code at a block."""
    return read_at(ctx, block, lambda view: bool(view.state.code(address)))


# --- one transaction ------------------------------------------------------------------------------


@method("ots_getInternalOperations", needs={"state"})
async def get_internal_operations(ctx: RpcContext, hash: HashParam) -> JsonList | None:
    """Returns the ether transfers, creations and self-destructs in a transaction. Null for an unmined transaction.

    Types: 0 transfer, 1 self-destruct, 2 CREATE, 3 CREATE2. Frames that were reverted are left out.
    """
    top = await _call_tree(ctx, hash)
    if top is None:
        return None
    return [
        {"type": _OPERATIONS[frame["type"]], "from": frame["from"], "to": frame["to"], "value": frame["value"]}
        for depth, frame in _frames(top, with_failed=False)
        if depth and frame["type"] in _OPERATIONS and (frame["type"] != "CALL" or frame["value"] != "0x0")
    ]


@method("ots_getTransactionError", needs={"state"})
async def get_transaction_error(ctx: RpcContext, hash: HashParam) -> Text:
    """Returns the revert data of a failed transaction; `0x` if there is no revert data."""
    top = await _call_tree(ctx, hash)
    return top.get("output", "0x") if top is not None and "error" in top else "0x"


@method("ots_traceTransaction", needs={"state"})
async def trace_mined(ctx: RpcContext, hash: HashParam) -> JsonList:
    """Returns the calls of a transaction in order of execution, each with its depth; `[]` before it is mined."""
    top = await _call_tree(ctx, hash)
    return [] if top is None else [_trace_entry(depth, frame) for depth, frame in _frames(top, with_failed=True)]


def _trace_entry(depth: int, frame: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": frame["type"],
        "depth": depth,
        "from": frame["from"],
        "to": frame.get("to"),
        "value": frame.get("value", "0x0"),
        "input": frame.get("input", "0x"),
        "output": frame.get("output", "0x"),
    }


async def _call_tree(ctx: RpcContext, hash: Hash32) -> dict[str, Any] | None:
    text = await transaction_trace(ctx, hash, TraceKind.calls())
    return None if text is None else orjson.loads(text)


def _frames(top: dict[str, Any], with_failed: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the call frames of a transaction in order of execution, each with its depth.

    Frames that have failed are included only with `with_failed`. The function is not recursive, because a call tree may
    be 1,024 frames deep.
    """
    waiting = [(0, top)]
    while waiting:
        depth, frame = waiting.pop()
        if "error" in frame and not with_failed:
            continue
        yield depth, frame
        waiting.extend((depth + 1, inner) for inner in reversed(frame.get("calls", ())))


@method("ots_getTransactionBySenderAndNonce", needs={"chain", "state", "pool"})
async def get_transaction_hash_by_sender_and_nonce(
    ctx: RpcContext, sender: AddressParam, nonce: IntegerParam
) -> Text | None:
    """Returns the hash of a transaction by sender and nonce; null if the transaction does not exist."""
    found = await get_transaction_by_sender_and_nonce(ctx, sender, nonce)
    return None if found is None else orjson.loads(found)["hash"]


@method("ots_getContractCreator", needs={"chain", "state"})
async def get_contract_creator(ctx: RpcContext, address: AddressParam) -> JsonObject | None:
    """Returns creator and transaction of a contract; null for other accounts and for contracts of the genesis file."""
    found = await creation_of(ctx, address)
    return None if found is None else {"hash": found[0], "creator": found[1]}


# --- blocks ---------------------------------------------------------------------------------------


@method("ots_getBlockDetails", needs={"chain"})
async def get_block_details(ctx: RpcContext, block: BlockNumberParam) -> JsonObject | None:
    """Returns a block with the number of its transactions, rewards and fees; null if the block is unknown."""
    header = header_at(ctx, block)
    return None if header is None else await _details(ctx, header)


@method("ots_getBlockDetailsByHash", needs={"chain"})
async def get_block_details_by_hash(ctx: RpcContext, hash: HashParam) -> JsonObject | None:
    """Returns a block by hash with the number of its transactions, rewards and fees; null if the block is unknown."""
    header = ctx.queries.header(hash)
    return None if header is None else await _details(ctx, header)


async def _details(ctx: RpcContext, header: HashedHeader) -> dict[str, Any]:
    block, receipts = await _block_and_receipts(ctx, header, full=False)
    count = len(block.pop("transactions"))
    fees = sum(int(one["gasUsed"], 16) * int(one["effectiveGasPrice"], 16) for one in receipts)
    body = ctx.queries.store.body(header.hash)
    rewards = [] if body is None or not header.number else ctx.queries.engine.rewards(header, ommers_of(body))
    of_block, of_uncles = sum(one for _, one in rewards[:1]), sum(one for _, one in rewards[1:])
    return {
        "block": {**block, "transactionCount": count},
        "issuance": {
            "blockReward": hex(of_block), "uncleReward": hex(of_uncles), "issuance": hex(of_block + of_uncles),
        },
        "totalFees": hex(fees),
    }  # fmt: skip


@method("ots_getBlockTransactions", needs={"chain"})
async def get_block_transactions(
    ctx: RpcContext, block: BlockNumberParam, page: IntegerParam, size: IntegerParam
) -> JsonObject | None:
    """Returns a page of a block's transactions and receipts; page 0 has the last transactions of the block.

    Inputs are cut to the function selector; receipts have neither logs nor bloom filter.
    """
    header = header_at(ctx, block)
    if header is None:
        return None
    _check_page(size)
    content, receipts = await _block_and_receipts(ctx, header, full=True)
    count = len(content["transactions"])
    end = max(0, count - page * size)
    part = slice(max(0, end - size), end)
    transactions = [{**one, "input": one["input"][:_SELECTOR_CHARS]} for one in content["transactions"][part]]
    return {
        "fullblock": {**content, "transactions": transactions, "transactionCount": count},
        "receipts": [{**one, "logs": None, "logsBloom": None} for one in receipts[part]],
    }


async def _block_and_receipts(
    ctx: RpcContext, header: HashedHeader, full: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    def read() -> tuple[bytes | None, bytes | None]:
        receipts = ctx.queries.store.block_receipts_json(header.hash, ctx.limits.shows_revert_reason)
        return ctx.rendered.block(header.hash, full), receipts

    block, receipts = await ctx.lanes.read.run(read)
    assert block is not None, "the header was found"
    return orjson.loads(block), orjson.loads(receipts or b"[]")


@method("erigon_getHeaderByNumber", needs={"chain"})
async def get_header_by_number(ctx: RpcContext, block: BlockNumberParam) -> JsonObject | None:
    """Returns the header fields of a block; null if the block does not exist."""
    header = header_at(ctx, block)
    if header is None:
        return None
    text = ctx.rendered.block(header.hash, False)
    fields: dict[str, Any] = {} if text is None else orjson.loads(text)
    return {name: value for name, value in fields.items() if name not in _NOT_OF_HEADER}


# --- transactions of an address -------------------------------------------------------------------


@method("ots_searchTransactionsBefore", needs={"chain", "state"})
async def search_transactions_before(
    ctx: RpcContext, address: AddressParam, block: IntegerParam, size: IntegerParam
) -> JsonObject:
    """Returns transactions that touch an address, in blocks below this block (0: all blocks), newest first."""
    _check_page(size)
    return await _page(ctx, await transactions_before(ctx, address, block, size))


@method("ots_searchTransactionsAfter", needs={"chain", "state"})
async def search_transactions_after(
    ctx: RpcContext, address: AddressParam, block: IntegerParam, size: IntegerParam
) -> JsonObject:
    """Returns transactions that touch an address, in blocks above this block (0: all blocks), newest first."""
    _check_page(size)
    return await _page(ctx, await transactions_after(ctx, address, block, size))


async def _page(ctx: RpcContext, page: AddressPage) -> dict[str, Any]:
    def read() -> tuple[list[Any], list[Any]]:
        transactions, receipts = [], []
        for text in page.hashes:
            hash = Hash32(bytes.fromhex(text[2:]))
            transaction = ctx.queries.transaction_json(hash)
            receipt = ctx.queries.receipt_json(hash, ctx.limits.shows_revert_reason)
            position = ctx.queries.transaction_position(hash)
            if transaction is None or receipt is None or position is None:
                continue  # the chain was reorganised during the read
            header = ctx.queries.header(position[0])
            transactions.append(orjson.loads(transaction))
            receipts.append({**orjson.loads(receipt), "timestamp": hex(header.header.timestamp if header else 0)})
        return transactions, receipts

    transactions, receipts = await ctx.lanes.read.run(read)
    return {"txs": transactions, "receipts": receipts, "firstPage": page.is_newest, "lastPage": page.is_oldest}


def _check_page(size: int) -> None:
    if not 0 < size <= MAX_PAGE:
        raise invalid_params(f"page size: a number from 1 to {MAX_PAGE} is expected")
