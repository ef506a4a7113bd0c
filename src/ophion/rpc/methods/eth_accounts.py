"""Accounts whose keys this node holds: the public test accounts of a development network, none on other networks.

Tools ask development nodes to sign. On other nodes `eth_accounts` is empty, `eth_sendTransaction` refers to
`eth_sendRawTransaction` (json-rpc.md 2), and the other methods are not enabled.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable
from typing import Annotated, Any

import orjson
from msgspec.structs import replace

from ophion.errors import RpcError
from ophion.native.crypto import PrivateKey, keccak256
from ophion.native.transactions import Transaction
from ophion.primitives.hexcodec import data
from ophion.primitives.types import Address
from ophion.rpc.errors import INVALID_PARAMS_CODE, SERVER_ERROR_CODE, invalid_params
from ophion.rpc.schema import render
from ophion.rpc.schema.registry import Example, method
from ophion.rpc.schema.schemas import AddressList, FilledResult, SignedResult
from ophion.rpc.schema.wire_types import AddressParam, Data, DataParam, HashResult, TextParam, WireType
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.failed_transaction import is_reported, raise_if_failed
from ophion.rpc.services.transaction_request import (
    TransactionRequest,
    TransactionRequestParam,
    UnreadRequestParam,
    decode_transaction_request,
    filled,
    next_nonce,
)
from ophion.wallet.personal_messages import message_hash, sign_hash
from ophion.wallet.unsigned_transaction import BLOB, DYNAMIC_FEE, UnsignedTransaction


@method("eth_accounts", examples=[Example([], [])])
def accounts(ctx: RpcContext) -> AddressList:
    """Returns the accounts that this node signs for. Only a development network can have such accounts."""
    if ctx.accounts is None:
        return []
    impersonated = () if ctx.dev is None else sorted(ctx.dev.impersonated.difference(ctx.accounts.addresses))
    return [data(address) for address in (*ctx.accounts.addresses, *impersonated)]


@method("eth_sendTransaction")
async def send_transaction(ctx: RpcContext, transaction: UnreadRequestParam | None = None) -> HashResult:
    """Signs a transaction of one of the node's accounts, adds it to the pool and returns its hash.

    Missing nonce, gas and fees are filled in. Not supported if the node holds no keys. A development node with a preset
    takes the first account as the default sender, and mines a transaction that fails.
    """
    if ctx.accounts is None:
        name = ctx.node.client_version.partition("/")[0]
        raise RpcError(
            -32604,
            "The method eth_sendTransaction is not supported. Use eth_sendRawTransaction to send a signed transaction "
            f"to {name}.",
        )
    request = _with_sender(ctx, decode_transaction_request(transaction))
    key = _signer(ctx, request.sender)
    unsigned = await filled(ctx, request, takes_failing=ctx.dev is not None and ctx.dev.mines_failing)
    if unsigned.type == BLOB:
        raise invalid_params("this node does not sign blob transactions: use eth_sendRawTransaction")
    is_reporting = ctx.dev is not None and is_reported(ctx, unsigned.gas)
    async with ctx.accounts.locks[request.sender]:
        if request.call.nonce is None:
            unsigned = replace(unsigned, nonce=next_nonce(ctx, request.sender))
        if key is None:
            assert ctx.dev is not None
            hash = await ctx.pool.send_decoded(ctx.dev.unsigned(unsigned, request.sender), not is_reporting)
        elif ctx.dev is not None and _is_plain(unsigned):
            hash = await ctx.pool.send_decoded(_signed_natively(unsigned, key), not is_reporting)
        else:
            hash = await ctx.pool.send(unsigned.signed_by(key))
    if is_reporting:
        await raise_if_failed(ctx, hash)
    return hash


def _with_sender(ctx: RpcContext, request: TransactionRequest) -> TransactionRequest:
    """Return the request with a sender: with a preset, the first account is the default."""
    assert ctx.accounts is not None
    if request.call.sender is None and ctx.accounts.addresses and ctx.has_preset:
        return replace(request, call=dataclasses.replace(request.call, sender=ctx.accounts.addresses[0]))
    return request


def _is_plain(unsigned: UnsignedTransaction) -> bool:
    """Whether Rust can sign the transaction in one call: the common case of a development node."""
    return (
        unsigned.type == DYNAMIC_FEE
        and not unsigned.access_list
        and unsigned.chain_id is not None
        and max(unsigned.nonce, unsigned.gas, unsigned.max_fee_per_gas, unsigned.max_priority_fee_per_gas) < 2**64
        and unsigned.value < 2**256
    )


def _signed_natively(unsigned: UnsignedTransaction, key: PrivateKey) -> Transaction:
    """Sign a transaction in Rust, with the same result as `UnsignedTransaction.signed_by`.

    tests/unit/rpc/methods/test_eth_accounts.py compares both results. The sender is known, so it is not recovered.
    """
    assert unsigned.chain_id is not None
    return Transaction.dynamic_fee(
        key.secret(),
        key.address,
        unsigned.chain_id,
        unsigned.nonce,
        unsigned.gas,
        unsigned.to,
        unsigned.value,
        unsigned.input,
        unsigned.max_fee_per_gas,
        unsigned.max_priority_fee_per_gas,
    )


@method("eth_signTransaction", needs={"accounts"})
async def sign_transaction(ctx: RpcContext, transaction: TransactionRequestParam) -> SignedResult:
    """Signs a transaction of one of the node's accounts without sending it; fills in missing fields.

    A development node with a preset takes the first account as the default sender. With the preset `anvil`, it returns
    only the encoded transaction.
    """
    request = _with_sender(ctx, transaction)
    key = _key(ctx, request.sender)
    unsigned = await filled(ctx, request)
    signature = key.sign(unsigned.signing_hash)
    raw = unsigned.with_signature(signature)
    if ctx.is_anvil:
        return data(raw)
    return {"raw": data(raw), "tx": render.unsigned_transaction(unsigned, key.address, keccak256(raw), signature)}


@method("eth_fillTransaction", needs={"chain", "pool", "state"})
async def fill_transaction(ctx: RpcContext, transaction: TransactionRequestParam) -> FilledResult:
    """Fills in missing nonce, gas, fees and type of a transaction, and returns it ready to sign."""
    unsigned = await filled(ctx, transaction)
    raw, sender = unsigned.unsigned, transaction.call.sender
    return {"raw": data(raw), "tx": render.unsigned_transaction(unsigned, sender, keccak256(raw), bytes(65))}


@method("eth_sign", needs={"accounts"})
def sign(ctx: RpcContext, address: AddressParam, message: DataParam) -> Data:
    """Signs a message with the prefix of EIP-191."""
    return sign_hash(_key(ctx, address), message_hash(message))


@method("personal_sign", needs={"accounts"})
def personal_sign(
    ctx: RpcContext, message: DataParam, address: AddressParam, password: TextParam | None = None
) -> Data:
    """Signs a message like `eth_sign`, with the parameter order that wallets use; the password is ignored."""
    return sign_hash(_key(ctx, address), message_hash(message))


def _typed_data(value: Any) -> Any:
    """Decode typed data: an object, or its JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        raise invalid_params("typed data: not JSON") from None


TypedDataParam = Annotated[
    Any,
    WireType(
        "typed data",
        "EIP-712 object, or its JSON text",
        {"anyOf": [{"type": "object"}, {"type": "string"}]},
        _typed_data,
    ),
]


@method("eth_signTypedData_v4", aliases=["eth_signTypedData", "eth_signTypedData_v3"], needs={"accounts"})
def sign_typed_data(ctx: RpcContext, address: AddressParam, typed_data: TypedDataParam) -> Awaitable[Data]:
    """Signs typed data (EIP-712)."""
    # lazy import: only development networks sign data
    from ophion.wallet.typed_data import TypedDataError, typed_data_hash

    key = _key(ctx, address)

    def signed() -> bytes:
        try:
            return sign_hash(key, typed_data_hash(typed_data))
        except TypedDataError as error:
            raise invalid_params(error.message) from None

    return ctx.lanes.read.run(signed)


def _signer(ctx: RpcContext, address: Address) -> PrivateKey | None:
    """Return the key of an account; None if a development node impersonates the account."""
    assert ctx.accounts is not None
    key = ctx.accounts.get(address)
    return None if key is None and ctx.dev is not None and ctx.dev.impersonates(address) else _key(ctx, address)


def _key(ctx: RpcContext, address: Address) -> PrivateKey:
    assert ctx.accounts is not None
    key = ctx.accounts.get(address)
    if key is None:
        if ctx.is_anvil:
            raise RpcError(INVALID_PARAMS_CODE, "No Signer available")
        raise RpcError(SERVER_ERROR_CODE, "unknown account")
    return key
