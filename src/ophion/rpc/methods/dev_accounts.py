"""Methods of Anvil and of wallets beside the standard eth_*: accounts, network id, blobs (development nodes only)."""

from __future__ import annotations

from ophion.primitives.hexcodec import data
from ophion.primitives.types import BlockTag
from ophion.rpc.errors import BLOCK_NOT_FOUND
from ophion.rpc.methods.eth_accounts import send_transaction
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.schemas import ReceiptJson
from ophion.rpc.schema.wire_types import AddressParam, BlockParam, HashParam
from ophion.rpc.services.block_reference import view_at
from ophion.rpc.services.cheat_code_params import Json, Nothing, cheat_code
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.receipts import receipt_of
from ophion.rpc.services.transaction_request import UnreadRequestParam


@method("eth_requestAccounts", needs={"dev", "accounts"})
def request_accounts(ctx: RpcContext) -> Json:
    """Returns the accounts that this node signs for. Wallets use this name for `eth_accounts`."""
    assert ctx.accounts is not None
    return [data(address) for address in ctx.accounts.addresses]


@method("eth_networkId", needs={"dev"})
def network_id(ctx: RpcContext) -> Json:
    """Returns the chain id as a decimal number, like `net_version`."""
    return str(ctx.queries.spec.chain_id)


@method("eth_getAccountInfo", needs={"dev"})
def account_info(ctx: RpcContext, address: AddressParam, block: BlockParam = BlockTag.LATEST) -> Json:
    """Returns nonce, balance and code of an account."""
    view = view_at(ctx, block)
    if view is None:
        raise BLOCK_NOT_FOUND()
    state = view.state
    return {
        "nonce": hex(state.nonce(address)),
        "balance": hex(state.balance(address)),
        "code": data(state.code(address)),
    }


@method("eth_getAccount", needs={"dev"})
def account(ctx: RpcContext, address: AddressParam, block: BlockParam = BlockTag.LATEST) -> Json:
    """Returns nonce, balance, storage root and code hash of an account; null if the account does not exist."""
    view = view_at(ctx, block)
    if view is None:
        raise BLOCK_NOT_FOUND()
    found = view.state.account(address)
    if found is None:
        return None
    nonce, balance, code_hash, storage_root = found
    return {
        "nonce": hex(nonce),
        "balance": hex(balance),
        "storageRoot": data(storage_root),
        "codeHash": data(code_hash),
    }


@method("eth_sendTransactionSync", needs={"dev", "accounts"})
async def send_transaction_sync(ctx: RpcContext, transaction: UnreadRequestParam) -> ReceiptJson:
    """Sends a transaction like `eth_sendTransaction` and waits for the receipt."""
    return await receipt_of(ctx, await send_transaction(ctx, transaction), None)


@cheat_code("anvil_getBlobByHash")
def blob_by_hash(ctx: RpcContext, hash: HashParam) -> Nothing:
    """Returns null, because this node checks blobs and does not store them."""


@cheat_code("anvil_getBlobsByTransactionHash")
def blobs_of_transaction(ctx: RpcContext, hash: HashParam) -> Nothing:
    """Returns null, because this node checks blobs and does not store them."""
