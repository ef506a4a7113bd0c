"""Reads the blocks of a state dump in Anvil's format, with transactions, receipts and earlier states."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ophion.chainspec.spec import ChainSpec
from ophion.consensus.header_rules import blob_base_fee
from ophion.dev.block_json import (
    decode_address,
    decode_bytes,
    decode_header,
    decode_int,
    decode_transaction,
    decode_word,
)
from ophion.native.crypto import keccak256
from ophion.native.exceptions import NativeError
from ophion.native.executor import AccountOverride
from ophion.native.store import NewBlock
from ophion.native.transactions import Body, Transaction
from ophion.native.wire import Receipts, split_receipts
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Hash32


class DumpedBlock(Struct, frozen=True):
    """A block of a dump. It is stored without execution."""

    header: HashedHeader
    body: Body
    receipts: Receipts
    blob_price: int
    state: tuple[AccountOverride, ...] | None = None
    """All accounts after the block; None if the dump has no state for this block."""

    def record(self, total_difficulty: int) -> NewBlock:
        """Return the block in the form in which the database takes it."""
        header = self.header
        return NewBlock.received(
            hash=header.hash,
            number=header.number,
            header=header.header.encode(),
            body=self.body,
            receipts=self.receipts,
            total_difficulty=total_difficulty,
            blob_price=self.blob_price,
        )


def decode_blocks(document: dict[str, Any], spec: ChainSpec) -> list[DumpedBlock]:
    """Return the blocks that lead to the dump's last block, in order. The list is empty if the dump has no blocks.

    Raises `ValueError` for blocks that cannot be read.
    """
    try:
        headers = {}
        for block in document.get("blocks") or ():
            header = decode_header(block["header"])
            headers[header.number] = (HashedHeader(header, keccak256(header.encode())), block)
        last = decode_int(document.get("best_block_number") or max(headers, default=0))
        results = _results_by_block(document.get("transactions") or ())
        states = {decode_word(hash): state for hash, state in document.get("historical_states") or ()}
        found: list[DumpedBlock] = []
        while last in headers and (not found or found[-1].header.parent_hash == headers[last][0].hash):
            hashed, block = headers[last]
            found.append(_block(hashed, block, results.get(hashed.hash, {}), states.get(hashed.hash), spec))
            last -= 1
    except (KeyError, TypeError, AttributeError, LookupError, ArithmeticError, NativeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return found[::-1]


def _results_by_block(transactions: Iterable[dict[str, Any]]) -> dict[Hash32, dict[int, dict[str, Any]]]:
    """Return the transactions with receipts by block hash and index."""
    found: dict[Hash32, dict[int, dict[str, Any]]] = {}
    for one in transactions:
        index = decode_int(one["info"]["transaction_index"])
        found.setdefault(decode_word(one["block_hash"]), {})[index] = one
    return found


def _block(
    header: HashedHeader,
    block: dict[str, Any],
    results: dict[int, dict[str, Any]],
    state: dict[str, Any] | None,
    spec: ChainSpec,
) -> DumpedBlock:
    count = len(block["transactions"])
    if sorted(results) != list(range(count)):
        raise ValueError(f"block {header.number} has {count} transactions and {len(results)} receipts")
    raws = [_transaction(one) for one in block["transactions"]]
    body = Body.of(raws, [], None if header.header.withdrawals_root is None else [])
    _check_senders(header.number, body, block["transactions"])
    receipts = rlp.encode([[_receipt(results[index]["receipt"]) for index in range(count)]])
    blobs = spec.fork_of(header.header).blobs
    return DumpedBlock(
        header=header,
        body=body,
        receipts=split_receipts(receipts, False, 1)[0],
        blob_price=0 if blobs is None else blob_base_fee(header.header.excess_blob_gas or 0, blobs.fee_fraction),
        state=None if state is None else tuple(_accounts(state)),
    )


def _check_senders(number: int, body: Body, transactions: list[dict[str, Any]]) -> None:
    for transaction, one in zip(body.transactions, transactions, strict=True):
        impersonated = one.get("impersonated_sender")
        if impersonated is not None and transaction.sender != decode_address(impersonated):
            raise ValueError(f"block {number} has a transaction of {impersonated} without a signature")


def _transaction(one: dict[str, Any]) -> bytes:
    """Encode a transaction. Registers the sender of an impersonated transaction (`Transaction.impersonated`)."""
    fields, impersonated = one.get("transaction", one), one.get("impersonated_sender")
    if impersonated is None:
        return decode_transaction(fields)
    sender = decode_address(impersonated)
    raw = decode_transaction(fields, sender)
    Transaction.impersonated(raw, sender)
    return raw


def _receipt(receipt: dict[str, Any]) -> rlp.Encodable:
    """Encode a receipt as eth/69 does: type, outcome, cumulative gas and logs."""
    logs: list[rlp.Encodable] = [
        [decode_address(log["address"]), [decode_word(topic) for topic in log["topics"]], decode_bytes(log["data"])]
        for log in receipt["logs"]
    ]
    numbers = (decode_int(receipt.get(name) or 0) for name in ("type", "status", "cumulativeGasUsed"))
    return [*(rlp.scalar(number) for number in numbers), logs]


def _accounts(state: dict[str, Any]) -> list[AccountOverride]:
    storage = state.get("storage") or {}
    return [
        AccountOverride(
            address=decode_address(address),
            nonce=decode_int(account["nonce"]),
            balance=decode_int(account["balance"]),
            code=_code(account.get("code")),
            state=[
                (decode_int(slot).to_bytes(32, "big"), decode_int(value).to_bytes(32, "big"))
                for slot, value in (storage.get(address) or {}).items()
            ],
        )
        for address, account in state["accounts"].items()
    ]


def _code(code: Any) -> bytes:
    """Return the code of a dumped account. The dump has it as hexadecimal text, as padded code with its original
    length, or as a delegation (EIP-7702).
    """
    if not code:
        return b""
    if isinstance(code, str):
        return decode_bytes(code)
    kind, value = next(iter(code.items()))
    if kind == "LegacyAnalyzed":
        return decode_bytes(value["bytecode"])[: decode_int(value["original_len"])]
    return decode_bytes(value["raw"] if isinstance(value, dict) else value)
