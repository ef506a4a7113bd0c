"""eth_*: blocks, uncles, transactions in blocks, receipts (json-rpc.md 5.5, 6, 7.1)."""

from __future__ import annotations

from collections.abc import Awaitable

from ophion.primitives import header as blocks
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import BlockTag, Hash32
from ophion.rpc.schema import render
from ophion.rpc.schema.registry import Example, method
from ophion.rpc.schema.schemas import BlockJson, ReceiptJson, ReceiptsJson, TransactionJson
from ophion.rpc.schema.wire_types import (
    AddressParam,
    BlockNumberParam,
    BlockParam,
    BooleanParam,
    Data,
    HashParam,
    IndexParam,
    Quantity,
    QuantityParam,
)
from ophion.rpc.services.block_reference import header_at, is_long
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.receipts import mined_receipt
from ophion.runtime.eager_coroutine import awaited


@method("eth_getBlockByNumber", needs={"chain"})
def get_block_by_number(
    ctx: RpcContext, block: BlockNumberParam, full: BooleanParam = False
) -> BlockJson | Awaitable[BlockJson | None] | None:
    """Returns a block with transaction hashes or, if `full`, transaction objects; null if the block does not exist.

    `pending` is the block being built, without hash and nonce.
    """
    if block is BlockTag.PENDING:
        return _pending_block(ctx, full)
    header = header_at(ctx, block)
    return None if header is None else _block(ctx, header, full)


@method("eth_getBlockByHash", needs={"chain"}, examples=[Example(["0x" + "00" * 32, False], None)])
def get_block_by_hash(
    ctx: RpcContext, block_hash: HashParam, full: BooleanParam = False
) -> BlockJson | Awaitable[BlockJson | None] | None:
    """Returns a block by hash, even if the block is not canonical; null if the block is unknown."""
    header = ctx.queries.header(block_hash)
    return None if header is None else _block(ctx, header, full)


def _block(ctx: RpcContext, header: HashedHeader, full: bool) -> bytes | Awaitable[bytes | None] | None:
    if full and is_long(header.header):
        text = ctx.rendered.get(header.hash, full)
        return ctx.lanes.read.run(lambda: ctx.rendered.block(header.hash, full)) if text is None else text
    return ctx.rendered.block(header.hash, full)


async def _pending_block(ctx: RpcContext, full: bool) -> bytes | None:
    view = await ctx.queries.pending()

    def read() -> bytes | None:
        if view.hash is not None:
            return ctx.rendered.block(view.hash, full)
        total = ctx.queries.total_difficulty(view.header.parent_hash) if ctx.queries.with_total_difficulty else None
        return render.pending_block(view, full, total)

    return await ctx.lanes.read.run(read) if is_long(view.header) else read()


@method(
    "eth_getBlockTransactionCountByNumber",
    needs={"chain"},
    examples=[Example(["0x1"], "0x1"), Example(["0x1869f"], None)],
)
def get_block_transaction_count_by_number(
    ctx: RpcContext, block: BlockNumberParam
) -> Quantity | Awaitable[Quantity | None] | None:
    """Returns the number of transactions of a block; null if the block does not exist."""
    if block is BlockTag.PENDING:
        return _pending_count(ctx)
    return _count(ctx, header_at(ctx, block))


@method(
    "eth_getBlockTransactionCountByHash",
    needs={"chain"},
    examples=[Example(["0x10aaf14a53caf27552325374429d3558398a36d3682ede6603c2c6511896e9f9"], "0x1")],
)
def get_block_transaction_count_by_hash(ctx: RpcContext, block_hash: HashParam) -> Quantity | None:
    """Returns the number of transactions of a block; null if the block is unknown."""
    return _count(ctx, ctx.queries.header(block_hash))


def _count(ctx: RpcContext, header: HashedHeader | None) -> int | None:
    counts = None if header is None else ctx.queries.store.counts(header.hash)
    return None if counts is None else counts[0]


async def _pending_count(ctx: RpcContext) -> int:
    return (await ctx.queries.pending()).body.transaction_count


# --- uncles --------------------------------------------------------------------------------------


@method("eth_getUncleCountByBlockNumber", needs={"chain"}, examples=[Example(["0x1"], "0x0")])
def get_uncle_count_by_block_number(ctx: RpcContext, block: BlockNumberParam) -> Quantity | None:
    """Returns the number of uncles of a block; null if the block does not exist."""
    return _uncle_count(ctx, header_at(ctx, block))


@method("eth_getUncleCountByBlockHash", needs={"chain"})
def get_uncle_count_by_block_hash(ctx: RpcContext, block_hash: HashParam) -> Quantity | None:
    """Returns the number of uncles of a block; null if the block is unknown."""
    return _uncle_count(ctx, ctx.queries.header(block_hash))


@method("eth_getUncleByBlockNumberAndIndex", needs={"chain"})
def get_uncle_by_block_number_and_index(
    ctx: RpcContext, block: BlockNumberParam, index: IndexParam
) -> BlockJson | None:
    """Returns an uncle of a block, as a block without transactions; null if the uncle does not exist."""
    return _uncle(ctx, header_at(ctx, block), index)


@method("eth_getUncleByBlockHashAndIndex", needs={"chain"})
def get_uncle_by_block_hash_and_index(ctx: RpcContext, block_hash: HashParam, index: IndexParam) -> BlockJson | None:
    """Returns an uncle of a block, as a block without transactions; null if the uncle does not exist."""
    return _uncle(ctx, ctx.queries.header(block_hash), index)


def _uncle_count(ctx: RpcContext, header: HashedHeader | None) -> int | None:
    counts = None if header is None else ctx.queries.store.counts(header.hash)
    return None if counts is None else counts[1]


def _uncle(ctx: RpcContext, header: HashedHeader | None, index: int) -> bytes | None:
    body = None if header is None else ctx.queries.store.body(header.hash)
    if body is None or index >= len(body.ommers):
        return None
    uncle = blocks.Header.decode(body.ommers[index])
    hashed = ctx.queries.engine.hashed(uncle)
    total = None
    if ctx.queries.with_total_difficulty:
        parent = ctx.queries.total_difficulty(uncle.parent_hash)
        total = None if parent is None else parent + uncle.difficulty
    return render.uncle(uncle, hashed.hash, total)


# --- transactions and receipts -------------------------------------------------------------------


@method(
    "eth_getTransactionByHash",
    needs={"chain", "pool"},
    exact_count=True,
    examples=[
        Example(
            ["0x9cc6c7e602c56aa30c554bb691377f8703d778cec8845f4b88c0f72516b304f4"],
            {
                "blockHash": "0xc8df1f061abb4d0c107b2b1a794ade8780b3120e681f723fe55a7be586d95ba6",
                "blockNumber": "0x1e",
                "blockTimestamp": "0x561bc336",
                "from": "0xa94f5374fce5edbc8e2a8697c15331677e6ebf0b",
                "gas": "0x4cb2f",
                "gasPrice": "0x1",
                "hash": "0x9cc6c7e602c56aa30c554bb691377f8703d778cec8845f4b88c0f72516b304f4",
                "input": "0xe8beef5b",
                "nonce": "0x1d",
                "to": "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f",
                "transactionIndex": "0x0",
                "value": "0xa",
                "type": "0x0",
                "v": "0x1c",
                "r": "0x11232cac2f935ab8dd5d5972438fde90e05d0dd620860b42886e7d54dc5c4a0c",
                "s": "0x3dd467b5faa6e5a0f3c22a5396fefa5b03f07d8114d8434e0e1493736aad8d0e",
            },
        )
    ],
)
def get_transaction_by_hash(ctx: RpcContext, transaction_hash: HashParam) -> TransactionJson | None:
    """Returns a transaction from pool or chain; null if the transaction is unknown.

    A pooled transaction has null in the keys that name its block.
    """
    pooled = ctx.pool.get(transaction_hash)
    return ctx.queries.transaction_json(transaction_hash) if pooled is None else pooled.transaction.json()


@method("eth_getTransactionBySenderAndNonce", needs={"chain", "state", "pool"})
async def get_transaction_by_sender_and_nonce(
    ctx: RpcContext, sender: AddressParam, nonce: QuantityParam
) -> TransactionJson | None:
    """Returns a transaction by sender and nonce, from pool or chain; null if the transaction does not exist."""
    pooled = ctx.pool.by_sender_nonce(sender, nonce)
    if pooled is not None:
        return pooled.transaction.json()
    if nonce >= ctx.queries.head_state.nonce(sender):
        return None
    return await ctx.lanes.read.run(lambda: _mined(ctx, sender, nonce))


def _mined(ctx: RpcContext, sender: bytes, nonce: int) -> bytes | None:
    """Return the mined transaction of this sender with this nonce. None if there is none, or if a needed state is
    pruned.

    Bisects for the first block after which the account nonce is higher, and searches that block.
    """
    low, high = 0, ctx.queries.head_number
    while low < high:
        middle = (low + high) // 2
        view = ctx.queries.view(middle)
        if view is None:
            return None
        if view.state.nonce(sender) > nonce:
            high = middle
        else:
            low = middle + 1
    header = ctx.queries.header(low)
    body = None if header is None else ctx.queries.store.body(header.hash)
    for transaction in () if body is None else body.transactions:
        if transaction.sender == sender and transaction.nonce == nonce:
            return ctx.queries.transaction_json(transaction.hash)
    return None


@method("eth_getTransactionByBlockNumberAndIndex", needs={"chain"}, examples=[Example(["0x2", "0xb"], None)])
def get_transaction_by_block_number_and_index(
    ctx: RpcContext, block: BlockNumberParam, index: IndexParam
) -> TransactionJson | Awaitable[TransactionJson | None] | None:
    """Returns a transaction by block and index; null if the block or index does not exist."""
    if block is BlockTag.PENDING:
        return _pending_transaction(ctx, index)
    header = header_at(ctx, block)
    return None if header is None else ctx.queries.store.transaction_at_json(header.hash, index)


@method("eth_getTransactionByBlockHashAndIndex", needs={"chain"})
def get_transaction_by_block_hash_and_index(
    ctx: RpcContext, block_hash: HashParam, index: IndexParam
) -> TransactionJson | None:
    """Returns a transaction by block and index; null if the block or index does not exist."""
    header = ctx.queries.header(block_hash)
    return None if header is None else ctx.queries.store.transaction_at_json(header.hash, index)


@method("eth_getRawTransactionByHash", needs={"chain", "pool"})
@method("debug_getRawTransaction", needs={"chain", "pool"})
def get_raw_transaction(ctx: RpcContext, transaction_hash: HashParam) -> Data | None:
    """Returns a pooled or mined transaction in its EIP-2718 encoding; null if the transaction is unknown."""
    pooled = ctx.pool.get(transaction_hash)
    if pooled is not None:
        return pooled.transaction.raw
    position = ctx.queries.transaction_position(transaction_hash)
    return None if position is None else ctx.queries.store.raw_transaction_at(position[0], position[2])


@method("eth_getRawTransactionByBlockNumberAndIndex", needs={"chain"}, examples=[Example(["0x2", "0xb"], None)])
def get_raw_transaction_by_block_number_and_index(
    ctx: RpcContext, block: BlockNumberParam, index: IndexParam
) -> Data | None:
    """Returns a mined transaction by block and index in its EIP-2718 encoding; null for an unknown transaction."""
    header = header_at(ctx, block)
    return None if header is None else ctx.queries.store.raw_transaction_at(header.hash, index)


@method("eth_getRawTransactionByBlockHashAndIndex", needs={"chain"})
def get_raw_transaction_by_block_hash_and_index(
    ctx: RpcContext, block_hash: HashParam, index: IndexParam
) -> Data | None:
    """Returns a mined transaction by block and index in its EIP-2718 encoding; null for an unknown transaction."""
    header = ctx.queries.header(block_hash)
    return None if header is None else ctx.queries.store.raw_transaction_at(header.hash, index)


async def _pending_transaction(ctx: RpcContext, index: int) -> bytes | None:
    transactions = (await ctx.queries.pending()).body.transactions
    return transactions[index].json() if index < len(transactions) else None


@method("eth_getTransactionReceipt", needs={"chain"}, examples=[Example(["0x" + "00" * 32], None)])
def get_transaction_receipt(
    ctx: RpcContext, transaction_hash: HashParam
) -> ReceiptJson | Awaitable[ReceiptJson | None] | None:
    """Returns the receipt of a mined transaction; null if the transaction is unknown or pending.

    With automine, the request waits for a transaction that has just been sent. Some clients retry only after the next
    block, and on an idle chain no block would follow.
    """
    ctx.mining.note_lookup()
    receipt = mined_receipt(ctx, transaction_hash)
    if receipt is None and ctx.pool.get(transaction_hash) is not None:
        soon = ctx.mining.mined(transaction_hash)
        if soon is not None:
            return _receipt_after(ctx, transaction_hash, soon)
    return receipt


async def _receipt_after(ctx: RpcContext, transaction_hash: Hash32, soon: Awaitable[None]) -> bytes | None:
    await soon
    return await awaited(mined_receipt(ctx, transaction_hash))


@method("eth_getBlockReceipts", needs={"chain"}, examples=[Example(["0x0"], [])])
def get_block_receipts(ctx: RpcContext, block: BlockParam) -> ReceiptsJson | Awaitable[ReceiptsJson | None] | None:
    """Returns all receipts of a block in order; null for an unknown block and for `pending`."""
    if block is BlockTag.PENDING:
        return None
    header = header_at(ctx, block)
    if header is None:
        return None

    def read() -> bytes | None:
        return ctx.queries.store.block_receipts_json(header.hash, ctx.limits.shows_revert_reason)

    return ctx.lanes.read.run(read) if is_long(header.header) else read()
