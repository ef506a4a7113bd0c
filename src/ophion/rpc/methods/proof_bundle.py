"""eth_getProofBundle: proofs for auditors, which `ophion proof verify` checks without a node (docs/data.md)."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

from ophion.errors import ProofError, RpcError
from ophion.primitives.types import Address, Hash32
from ophion.rpc.errors import LIMIT_EXCEEDED_CODE, SERVER_ERROR_CODE, invalid_params
from ophion.rpc.schema.registry import method
from ophion.rpc.schema.schemas import ProofBundleResult
from ophion.rpc.schema.wire_types import (
    BlockNumberParam,
    BooleanParam,
    HashParam,
    WireType,
    decode_address,
    decode_slot,
)
from ophion.rpc.services.block_reference import header_at
from ophion.rpc.services.context import RpcContext

if TYPE_CHECKING:
    from ophion.proofs.bundle import ProofBundle


def _decode_accounts(value: object) -> dict[Address, list[Hash32]]:
    # lazy import: proofs need the engines of all networks, and few clients ask for proofs
    from ophion.proofs.builder import MAX_SLOTS

    if type(value) is not dict or not all(type(slots) is list for slots in value.values()):
        raise invalid_params("accounts: an object with an array of storage positions for each address is expected")
    if sum(1 + len(slots) for slots in value.values()) > MAX_SLOTS:
        raise RpcError(LIMIT_EXCEEDED_CODE, f"Number of accounts and storage keys exceeds {MAX_SLOTS}")
    return {decode_address(address): [decode_slot(slot) for slot in slots] for address, slots in value.items()}


AccountsParam = Annotated[
    dict[Address, list[Hash32]],
    WireType(
        "slots by account",
        "accounts to prove, each with a list of storage positions",
        {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
        _decode_accounts,
    ),
]


@method("eth_getProofBundle", needs={"chain", "state"})
async def get_proof_bundle(
    ctx: RpcContext,
    transaction: HashParam | None = None,
    accounts: AccountsParam | None = None,
    block: BlockNumberParam | None = None,
    by_checkpoint: BooleanParam | None = None,
) -> ProofBundleResult:
    """Returns a proof of a transaction, its receipt and logs, and of accounts after its block.

    The proof has the sealed header and the headers that show how validators changed. Without a transaction, proves
    accounts after `block`. Needs IBFT 2.0, QBFT or Clique. With `byCheckpoint`, omits the headers with votes, for an
    auditor who knows the hash of the block. `ophion proof verify` verifies the proof.
    """
    # lazy import: see `_decode_accounts`
    from ophion.proofs.builder import account_bundle, transaction_bundle

    chain, wanted, is_checkpoint = ctx.queries.chain, accounts or {}, bool(by_checkpoint)
    if transaction is None and block is None:
        raise invalid_params("a transaction hash or a block number is expected")
    if transaction is not None:
        return await _built(ctx, lambda stop: transaction_bundle(chain, transaction, wanted, is_checkpoint, stop))
    assert block is not None
    header = header_at(ctx, block)
    number = -1 if header is None else header.number
    return await _built(ctx, lambda stop: account_bundle(chain, number, wanted, is_checkpoint, stop))


async def _built(ctx: RpcContext, build: Callable[[Callable[[], bool]], ProofBundle]) -> dict[str, Any]:
    """Build the proof in the read lane (worker threads), because a proof may need the headers of many epochs. Stops
    when the request ends.
    """
    is_over = Event()
    try:
        bundle = await ctx.lanes.read.run(lambda: build(is_over.is_set))
    except ProofError as error:
        raise RpcError(SERVER_ERROR_CODE, str(error)) from error
    finally:
        is_over.set()
    return bundle.as_object()
