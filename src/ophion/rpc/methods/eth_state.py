"""eth_*: accounts, storage, code and proofs at a block (json-rpc.md 5.4)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated

from ophion.chain.queries import BlockView
from ophion.errors import RpcError
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import Address, BlockTag, Hash32
from ophion.rpc.errors import LIMIT_EXCEEDED_CODE, invalid_params
from ophion.rpc.schema.registry import Example, method
from ophion.rpc.schema.schemas import ProofJson, StorageValuesResult
from ophion.rpc.schema.wire_types import (
    AddressParam,
    BlockParam,
    Data,
    Quantity,
    SlotParam,
    WireType,
    decode_address,
    decode_slot,
)
from ophion.rpc.services.account_proofs import MAX_INLINE_SLOTS, proof
from ophion.rpc.services.block_reference import read_at, read_in_lane
from ophion.rpc.services.context import RpcContext

_MAX_VALUES = 1024


def _decode_slots(value: object) -> list[Hash32]:
    if type(value) is not list:
        raise invalid_params("storage keys: an array is expected")
    return [decode_slot(member) for member in value]


def _decode_named_slots(value: object) -> list[tuple[str, Hash32]]:
    """Decode the storage slots of `eth_getProof`, each with the key that the response shows.

    If the request writes all 32 bytes of a key, the response shows 32 bytes too. Otherwise the response shows the key
    without leading zeros.
    """
    slots = _decode_slots(value)
    is_whole = [len(str(member).removeprefix("0x")) == 64 for member in value]  # type: ignore[attr-defined]
    return [
        (data(slot) if whole else quantity(int.from_bytes(slot, "big")), slot)
        for slot, whole in zip(slots, is_whole, strict=True)
    ]


def _decode_slots_by_address(value: object) -> dict[Address, list[Hash32]]:
    if type(value) is not dict:
        raise invalid_params("storage keys: an object with an array for each address is expected")
    decoded = {decode_address(address): _decode_slots(slots) for address, slots in value.items()}
    count = sum(map(len, decoded.values()))
    if not count:
        raise invalid_params("storage keys: empty request")
    if count > _MAX_VALUES:
        raise RpcError(LIMIT_EXCEEDED_CODE, f"Number of storage keys exceeds {_MAX_VALUES}")
    return decoded


_KEYS = {"type": "array", "items": {"type": "string"}}
SlotsParam = Annotated[list[tuple[str, Hash32]], WireType("slots", "storage positions", _KEYS, _decode_named_slots)]
SlotsByAddressParam = Annotated[
    dict[Address, list[Hash32]],
    WireType(
        "slots by address",
        "storage positions by address",
        {"type": "object", "additionalProperties": _KEYS},
        _decode_slots_by_address,
    ),
]


@method(
    "eth_getBalance",
    needs={"state"},
    latest_read="balance",
    examples=[Example(["0xa94f5374fce5edbc8e2a8697c15331677e6ebf0b", "earliest"], "0x9184e72a000")],
)
def get_balance(
    ctx: RpcContext, address: AddressParam, block: BlockParam = BlockTag.LATEST
) -> Quantity | Awaitable[Quantity | None] | None:
    """Returns the balance of an account in wei at a block; null if the block does not exist."""
    return read_at(ctx, block, lambda view: view.state.balance(address))


@method(
    "eth_getTransactionCount",
    needs={"state", "pool"},
    latest_read="nonce",
    examples=[Example(["0xa94f5374fce5edbc8e2a8697c15331677e6ebf0b", "latest"], "0x20")],
)
def get_transaction_count(
    ctx: RpcContext, address: AddressParam, block: BlockParam = BlockTag.LATEST
) -> Quantity | Awaitable[Quantity | None] | None:
    """Returns the nonce of an account at a block.

    `pending` returns the next nonce after the account's consecutive pooled transactions.
    """
    if block is BlockTag.LATEST:
        return ctx.queries.head_state.nonce(address)
    if block is BlockTag.PENDING:
        return max(ctx.queries.head_state.nonce(address), ctx.pool.next_nonce(address) or 0)
    if isinstance(block, int) and block < 0:
        return 0
    return read_at(ctx, block, lambda view: view.state.nonce(address))


@method(
    "eth_getCode", needs={"state"}, examples=[Example(["0xa94f5374fce5edbc8e2a8697c15331677e6ebf0b", "latest"], "0x")]
)
def get_code(
    ctx: RpcContext, address: AddressParam, block: BlockParam = BlockTag.LATEST
) -> Data | Awaitable[Data | None] | None:
    """Returns the code of a contract at a block; `0x` if the account has none."""
    return read_at(ctx, block, lambda view: view.state.code(address))


@method(
    "eth_getStorageAt",
    needs={"state"},
    examples=[
        Example(
            ["0x6295ee1b4f6dd65047762f924ecd367c17eabf8f", "0x4", "latest"],
            "0xaabbccffffffffffffffffffffffffffffffffffffffffffffffffffffffffee",
        )
    ],
)
def get_storage_at(
    ctx: RpcContext, address: AddressParam, position: SlotParam, block: BlockParam = BlockTag.LATEST
) -> Data | Awaitable[Data | None] | None:
    """Returns a 32-byte storage slot of an account at a block; zero if the slot was never set."""
    return read_at(ctx, block, lambda view: view.state.storage(address, position))


@method("eth_getStorageValues", needs={"state"})
def get_storage_values(
    ctx: RpcContext, slots: SlotsByAddressParam, block: BlockParam = BlockTag.LATEST
) -> StorageValuesResult | Awaitable[StorageValuesResult | None] | None:
    """Returns several storage slots of several accounts at one block."""

    def read(view: BlockView) -> dict[str, list[str]]:
        state = view.state
        return {data(owner): [data(state.storage(owner, slot)) for slot in keys] for owner, keys in slots.items()}

    return read_at(ctx, block, read)


@method("eth_getProof", needs={"state"})
def get_proof(
    ctx: RpcContext, address: AddressParam, storage_keys: SlotsParam, block: BlockParam = BlockTag.LATEST
) -> ProofJson | Awaitable[ProofJson | None] | None:
    """Returns a Merkle proof of an account and some of its storage (EIP-1186).

    For a missing account, proves its absence. Storage proofs are in the order of the request.
    """
    max_bytes = ctx.limits.max_response_bytes
    read = read_at if len(storage_keys) <= MAX_INLINE_SLOTS else read_in_lane
    return read(ctx, block, lambda view: proof(view, address, storage_keys, max_bytes))
