"""Impersonation, pool and node information of development nodes (anvil_*, hardhat_*)."""

from __future__ import annotations

from typing import Any

from ophion.dev.cheat_codes import DevNode
from ophion.errors import RpcError
from ophion.primitives.hexcodec import data
from ophion.primitives.types import BlockTag
from ophion.rpc.errors import BLOCK_NOT_FOUND, SERVER_ERROR_CODE, invalid_params
from ophion.rpc.methods.eth_accounts import send_transaction
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.schemas import ReceiptJson
from ophion.rpc.schema.wire_types import AddressParam, BlockParam, Boolean, DataParam, HashParam, HashResult, TextParam
from ophion.rpc.services.block_reference import view_at
from ophion.rpc.services.cheat_code_params import FlagParam, Json, Nothing, cheat_code, dev_of
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.receipts import receipt_of
from ophion.rpc.services.transaction_request import UnreadRequestParam, decode_transaction_request, filled

_SIGNATURE_BYTES = 65
_METHOD_NOT_FOUND_CODE = -32601


@cheat_code("anvil_impersonateAccount", "hardhat_impersonateAccount")
def impersonate(ctx: RpcContext, address: AddressParam) -> Json:
    """Accepts transactions of an account without its signature."""
    dev = dev_of(ctx)
    dev.impersonated.add(address)
    return True if dev.identity.preset == "hardhat" else None


@cheat_code("anvil_stopImpersonatingAccount", "hardhat_stopImpersonatingAccount")
def stop_impersonating(ctx: RpcContext, address: AddressParam) -> Json:
    """Requires signatures of an account again."""
    dev = dev_of(ctx)
    was_there = address in dev.impersonated
    dev.impersonated.discard(address)
    return was_there if dev.identity.preset == "hardhat" else None


@cheat_code("anvil_autoImpersonateAccount", "hardhat_autoImpersonateAccount")
def auto_impersonate(ctx: RpcContext, is_on: FlagParam) -> Nothing:
    """Accepts transactions of all accounts without signatures, or requires signatures again."""
    dev_of(ctx).impersonates_all = is_on


@cheat_code("anvil_impersonateSignature")
def impersonate_signature(ctx: RpcContext, signature: DataParam, address: AddressParam) -> Nothing:
    """Makes the ecrecover precompile return this address for a signature."""
    if len(signature) != _SIGNATURE_BYTES:
        raise invalid_params(f"signature: exactly {_SIGNATURE_BYTES} bytes are expected")
    dev_of(ctx).impersonate_signature(signature, address)


@method("eth_sendUnsignedTransaction", needs={"dev"})
async def send_unsigned(ctx: RpcContext, transaction: UnreadRequestParam) -> HashResult:
    """Sends a transaction of any account without a signature."""
    request = decode_transaction_request(transaction)
    unsigned = await filled(ctx, request)
    return await ctx.pool.send_decoded(dev_of(ctx).unsigned(unsigned, request.sender))


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


# --- pool ----------------------------------------------------------------------------------------


@cheat_code("anvil_dropTransaction")
def drop_transaction(ctx: RpcContext, hash: HashParam) -> Json:
    """Removes a transaction from the pool; returns its hash, or null if the pool does not have the transaction."""
    return data(hash) if dev_of(ctx).drop(hash) else None


@cheat_code("hardhat_dropTransaction")
def hardhat_drop_transaction(ctx: RpcContext, hash: HashParam) -> Boolean:
    """Removes a transaction from the pool; returns whether the pool had it, as Hardhat's helpers expect."""
    return dev_of(ctx).drop(hash)


@cheat_code("anvil_dropAllTransactions", "hardhat_dropAllTransactions")
def drop_all_transactions(ctx: RpcContext) -> Nothing:
    """Removes all transactions from the pool."""
    dev_of(ctx).drop_all()


@cheat_code("anvil_removePoolTransactions", "hardhat_removePoolTransactions")
def remove_pool_transactions(ctx: RpcContext, sender: AddressParam) -> Nothing:
    """Removes all transactions of an account from the pool."""
    dev_of(ctx).drop_all(sender)


# --- the node ------------------------------------------------------------------------------------


@cheat_code("anvil_nodeInfo")
def node_info(ctx: RpcContext) -> Json:
    """Returns the head, the environment of the next block, and the mining mode."""
    queries, following = ctx.queries, ctx.queries.next_block().header
    return {
        "currentBlockNumber": hex(queries.head_number),
        "currentBlockTimestamp": queries.head.timestamp,
        "currentBlockHash": data(queries.head_hash),
        "hardFork": queries.spec.fork_of(following).name.capitalize(),
        "transactionOrder": "fees",
        "environment": {
            "baseFee": hex(following.base_fee_per_gas or 0),
            "chainId": queries.spec.chain_id,
            "gasLimit": hex(following.gas_limit),
            "gasPrice": hex((following.base_fee_per_gas or 0) + 1_000_000_000),
        },
        "forkConfig": _fork_config(dev_of(ctx)),
    }


def _fork_config(dev: DevNode) -> dict[str, Any]:
    if dev.fork is None:
        return {"forkUrl": None, "forkBlockNumber": None, "forkRetryBackoff": None}
    settings = dev.fork.settings
    backoff_ms = int(1000 * settings.backoff_s)
    return {"forkUrl": settings.url, "forkBlockNumber": dev.fork.point.number, "forkRetryBackoff": backoff_ms}


def _forked_network(dev: DevNode) -> dict[str, Any] | None:
    if dev.fork is None:
        return None
    point = dev.fork.point
    return {"chainId": point.chain_id, "forkBlockNumber": point.number, "forkBlockHash": data(point.header.hash)}


@cheat_code("anvil_metadata")
def metadata(ctx: RpcContext) -> Json:
    """Returns version, chain and instance id. The instance id differs between runs of a node."""
    queries, dev = ctx.queries, dev_of(ctx)
    return {
        "clientVersion": ctx.node.client_version,
        "chainId": queries.spec.chain_id,
        "instanceId": data(dev.instance_id),
        "latestBlockNumber": queries.head_number,
        "latestBlockHash": data(queries.head_hash),
        "forkedNetwork": _forked_network(dev),
        "snapshots": {hex(number): [head.number, data(head.hash)] for number, head in dev.snapshots().items()},
    }


@cheat_code("hardhat_metadata")
def hardhat_metadata(ctx: RpcContext) -> Json:
    """Returns the same metadata as `anvil_metadata`. Available only with a preset of the development node.

    When a node offers this method, hardhat-ethers sends every transaction with a fixed gas limit, and expects an error
    if the transaction fails (see `eth_sendTransaction`).
    """
    if dev_of(ctx).identity.preset is None:
        raise RpcError(_METHOD_NOT_FOUND_CODE, "Method not found")
    return metadata(ctx)


@cheat_code("anvil_setLoggingEnabled", "hardhat_setLoggingEnabled")
def set_logging(ctx: RpcContext, is_on: FlagParam) -> Nothing:
    """Accepted for compatibility; this node does not log single requests."""
    dev_of(ctx).logs_requests = is_on


@cheat_code("anvil_enableTraces")
def enable_traces(ctx: RpcContext) -> Nothing:
    """Accepted for compatibility; traces are always available."""


@cheat_code("anvil_setRpcUrl")
def set_rpc_url(ctx: RpcContext, url: TextParam) -> Nothing:
    """Sets the node from which this node fetches the forked chain."""
    dev = dev_of(ctx)
    if dev.fork is None:
        raise RpcError(SERVER_ERROR_CODE, "anvil_setRpcUrl: this node does not fork another chain")
    dev.fork.use_source(url)
