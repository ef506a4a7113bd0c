"""debug_*: storage and accounts by hash, raw encodings, invalid blocks (json-rpc.md 5.9, 6, 7.1)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, Any, Final, TypeVar

from ophion.chain.bad_blocks import BadBlock
from ophion.errors import RpcError
from ophion.native.crypto import keccak256
from ophion.native.executor import State, execute
from ophion.native.transactions import Body
from ophion.pool.events import Admission, Admitted, Origin
from ophion.primitives.header import HashedHeader
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import ZERO_ADDRESS
from ophion.rpc.errors import (
    ACCOUNT_NOT_FOUND,
    BLOCK_NOT_FOUND,
    INTERNAL_ERROR,
    as_rpc_error,
    invalid_params,
)
from ophion.rpc.schema import render
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.schemas import MetricsResult
from ophion.rpc.schema.wire_types import (
    AddressParam,
    BlockId,
    BlockParam,
    Data,
    DecimalParam,
    IntegerParam,
    SlotParam,
    WireType,
    decode_data,
    object_result,
)
from ophion.rpc.services.block_reference import header_at, is_long
from ophion.rpc.services.context import RpcContext

T = TypeVar("T")

_NO_KEY: Final = bytes(32)


def _raw_or_none(value: object) -> bytes | None:
    """Decode bytes. Returns None for malformed text, so that one bad entry does not fail the whole request."""
    if type(value) is not str:
        raise invalid_params("transaction: a string is expected")
    try:
        return decode_data(value)
    except RpcError:
        return None


RawTransactionParam = Annotated[
    bytes | None, WireType("raw transaction", "signed transaction", {"type": "string"}, _raw_or_none)
]
IgnoredParam = Annotated[object, WireType("ignored", "ignored", {}, lambda value: value)]
_MAX_ENTRIES: Final = 8_192
"""Maximum entries of a range in one response; `nextKey` continues the range."""
_MAX_TRANSACTIONS: Final = 1_024

StorageRangeResult = Annotated[
    dict[str, Any],
    object_result(
        "storage range",
        "slots of a contract in the order of their hashes",
        {
            "type": "object",
            "properties": {
                "storage": {"type": "object"},
                "nextKey": {"type": "string"},
                "complete": {"type": "boolean"},
            },
        },
    ),
]
AccountRangeResult = Annotated[
    dict[str, Any],
    object_result(
        "account range",
        "addresses in the order of their hashes",
        {"type": "object", "properties": {"addressMap": {"type": "object"}, "nextKey": {"type": "string"}}},
    ),
]
AccountAtResult = Annotated[
    dict[str, str],
    object_result(
        "account",
        "balance, nonce and code",
        {
            "type": "object",
            "properties": {name: {"type": "string"} for name in ("balance", "code", "codehash", "nonce")},
        },
    ),
]
RawList = Annotated[
    list[str], object_result("list of data", "encodings", {"type": "array", "items": {"type": "string"}})
]
BatchResult = Annotated[
    list[dict[str, Any]],
    object_result(
        "admissions",
        "`index`, `success` and `errorMessage` of each transaction",
        {"type": "array", "items": {"type": "object"}},
    ),
]
BadBlocksResult = Annotated[
    list[dict[str, Any]],
    object_result("bad blocks", "invalid blocks", {"type": "array", "items": {"type": "object"}}),
]


# --- state by hashed keys ------------------------------------------------------------------------


@method("debug_storageRangeAt", needs={"state"})
async def storage_range_at(
    ctx: RpcContext,
    block: BlockParam,
    tx_index: DecimalParam,
    address: AddressParam,
    start_key: SlotParam,
    limit: DecimalParam,
) -> StorageRangeResult:
    """Returns storage of a contract after a transaction of a block, in the order of the slots' hashes."""
    if tx_index < 0:
        raise INTERNAL_ERROR("txIndex: a non-negative number is expected")
    header = header_at(ctx, block)
    if header is None or limit < 0:
        return {"storage": {}, "complete": True}
    count = min(limit, _MAX_ENTRIES)

    def read() -> tuple[list[tuple[bytes, bytes | None, bytes]], bytes | None]:
        return _state_within(ctx, header, tx_index).storage_range(address, start_key, count)

    slots, following = await ctx.lanes.trace.run(read)
    result: dict[str, Any] = {
        "storage": {
            data(hash): {"key": None if slot is None else data(slot), "value": data(value)}
            for hash, slot, value in slots
        },
        "complete": following is None,
    }
    if following is not None:
        result["nextKey"] = data(following)
    return result


def _state_within(ctx: RpcContext, header: HashedHeader, tx_index: int) -> State:
    """Return the state after a transaction of a block. If the index is too high, returns the state after the block."""
    chain = ctx.queries.chain
    body, parent = chain.store.body(header.hash), chain.header(header.parent_hash)
    if parent is None or body is None or tx_index >= body.transaction_count:
        return chain.state(header.header)
    included = [transaction.raw for transaction in body.transactions[: tx_index + 1]]
    begun = Body.of(included, [], None if body.withdrawals is None else [])
    view = ctx.queries.view(header.hash)
    assert view is not None, "a block that has a header can be viewed"
    return execute(chain.state(parent.header), view.env, begun, [], False).state


@method("debug_accountAt", needs={"state"})
async def account_at(
    ctx: RpcContext, block: BlockParam, tx_index: IntegerParam, address: AddressParam
) -> AccountAtResult:
    """Returns an account after a transaction of a block."""
    header = _known(ctx, block)
    body = _found(ctx.queries.store.body(header.hash))
    if not 0 <= tx_index < body.transaction_count:
        raise invalid_params("txIndex: the block has no such transaction")

    def read() -> dict[str, str]:
        state = _state_within(ctx, header, tx_index)
        account = state.account(address)
        if account is None:
            raise ACCOUNT_NOT_FOUND()
        nonce, balance, code_hash, _ = account
        code = data(state.code(address))
        return {"balance": quantity(balance), "code": code, "codehash": data(code_hash), "nonce": quantity(nonce)}

    return await ctx.lanes.trace.run(read)


@method("debug_accountRange", needs={"state"})
async def account_range(
    ctx: RpcContext, block: BlockParam, tx_index: IgnoredParam, start_hash: SlotParam, limit: IntegerParam
) -> AccountRangeResult:
    """Returns addresses of accounts after a block, in the order of their hashes."""
    header = header_at(ctx, block)
    if header is None or limit < 0:
        return {"addressMap": {}, "nextKey": None}
    count = min(limit, _MAX_ENTRIES)

    def read() -> tuple[list[tuple[bytes, bytes | None, int, int, bytes, bytes]], bytes | None]:
        return ctx.queries.chain.state(header.header).accounts(start_hash, count)

    accounts, following = await ctx.lanes.trace.run(read)
    return {
        # if the node knows only the hash of an address, the response shows the zero address
        "addressMap": {data(row[0]): data(ZERO_ADDRESS if row[1] is None else row[1]) for row in accounts},
        "nextKey": data(_NO_KEY if following is None else following),
    }


# --- encodings -----------------------------------------------------------------------------------


@method("debug_getRawHeader", needs={"chain"})
def get_raw_header(ctx: RpcContext, block: BlockParam) -> Data:
    """Returns the RLP of a block header."""
    return _found(ctx.queries.store.header(_known(ctx, block).hash))


@method("debug_getRawBlock", needs={"chain"})
def get_raw_block(ctx: RpcContext, block: BlockParam) -> Data:
    """Returns the RLP of a block."""
    return _found(ctx.queries.store.block(_known(ctx, block).hash))


@method("debug_getRawReceipts", needs={"chain"})
def get_raw_receipts(ctx: RpcContext, block: BlockParam) -> RawList | Awaitable[RawList]:
    """Returns the receipts of a block, each in its EIP-2718 encoding."""
    header = _known(ctx, block)

    def read() -> list[str]:
        return [data(receipt) for receipt in _found(ctx.queries.store.raw_receipts(header.hash))]

    return ctx.lanes.read.run(read) if is_long(header.header) else read()


def _known(ctx: RpcContext, block: BlockId) -> HashedHeader:
    return _found(header_at(ctx, block))


def _found(thing: T | None) -> T:
    if thing is None:
        raise BLOCK_NOT_FOUND()
    return thing


@method("debug_batchSendRawTransaction", needs={"pool"})
async def batch_send_raw_transaction(ctx: RpcContext, *transactions: RawTransactionParam) -> BatchResult:
    """Adds signed transactions to the pool, independently of each other, and returns a result for each."""
    if len(transactions) > _MAX_TRANSACTIONS:
        raise invalid_params(f"at count {_MAX_TRANSACTIONS} transactions at a time")
    good = {index: raw for index, raw in enumerate(transactions) if raw is not None}
    admitted = dict(zip(good, await ctx.pool.submit(tuple(good.values()), Origin.LOCAL), strict=True))
    return [_status(index, admitted.get(index)) for index in range(len(transactions))]


def _status(index: int, admission: Admission | None) -> dict[str, Any]:
    if isinstance(admission, Admitted):
        return {"index": index, "success": True}
    error = invalid_params() if admission is None else as_rpc_error(admission.error)
    return {"index": index, "success": False, "errorMessage": "" if error is None else error.message}


@method("debug_metrics")
def metrics(ctx: RpcContext) -> MetricsResult:
    """Returns the metrics of the node by category. Request metrics are included only if metrics are on."""
    return ctx.metrics()


@method("debug_getBadBlocks", needs={"bad_blocks"})
def get_bad_blocks(ctx: RpcContext) -> BadBlocksResult:
    """Returns the last invalid blocks, newest first."""
    assert ctx.bad_blocks is not None
    return [
        {
            "block": _bad_block(bad),
            "hash": data(bad.header.hash),
            "rlp": data(bad.body.encode_block(bad.header.header.encode())),
        }
        for bad in ctx.bad_blocks.recent()
    ]


def _bad_block(bad: BadBlock) -> dict[str, Any]:
    header, body = bad.header.header, bad.body
    uncles = [keccak256(ommer) for ommer in body.ommers]
    size = len(body.encode_block(header.encode()))
    hashes = [data(transaction.hash) for transaction in body.transactions]
    return render.block_object(header, bad.header.hash, None, size, uncles, hashes, body.withdrawals)
