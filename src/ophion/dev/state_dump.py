"""Dumps of a chain in Anvil's format: compressed JSON over JSON-RPC, plain JSON in a file.

A dump holds the accounts of the head, and all blocks with transactions and receipts. `load` replaces the blocks of the
chain by those of the dump and sets the accounts in the state of the head. If a dump has no blocks, or its blocks do not
continue this chain, `load` uses only the accounts and adds empty blocks up to the dump's block number.
"""

from __future__ import annotations

import gzip
import logging
import zlib
from collections.abc import Iterator
from typing import Any

import orjson

from ophion.dev.block_dump import dumped_blocks
from ophion.dev.block_json import decode_address, decode_bytes, decode_int
from ophion.dev.cheat_codes import DevNode
from ophion.dev.dumped_chain import decode_blocks
from ophion.errors import OphionError
from ophion.native.executor import AccountOverride, State
from ophion.native.fork import FORK_MARKER_SLOT
from ophion.primitives.hexcodec import data
from ophion.primitives.types import ZERO_HASH

log = logging.getLogger(__name__)

_PAGE = 1000
_MAX_BYTES = 1024 * 1024 * 1024
_TIME_BITS = 40
_MAX_ADDED_BLOCKS = 1_000_000
_GZIP_MAGIC = b"\x1f\x8b"


class BadStateFile(OphionError):
    """Raised when a state dump cannot be decoded."""


def dump(dev: DevNode) -> dict[str, Any]:
    """Return the chain and the state of its head in Anvil's format."""
    header, state = dev.chain.head.header, dev.queries.head_state
    blocks, transactions = dumped_blocks(dev, header.number)
    return {
        "block": {
            "number": hex(header.number),
            "beneficiary": data(header.coinbase),
            "timestamp": hex(header.timestamp),
            "gas_limit": hex(header.gas_limit),
            "basefee": hex(header.base_fee_per_gas or 0),
            "difficulty": "0x0",
            "prevrandao": data(header.mix_hash),
            "blob_excess_gas_and_price": {"excess_blob_gas": header.excess_blob_gas or 0, "blob_gasprice": 1},
        },
        "accounts": dict(_accounts(state)),
        "best_block_number": hex(header.number),
        "blocks": blocks,
        "transactions": transactions,
        "historical_states": None,
    }


def _accounts(state: State) -> Iterator[tuple[str, dict[str, Any]]]:
    start: bytes | None = ZERO_HASH
    while start is not None:
        page, start = state.accounts(start, _PAGE)
        for _, address, nonce, balance, _, _ in page:
            if address is None:
                continue
            yield (
                data(address),
                {
                    "nonce": nonce,
                    "balance": hex(balance),
                    "code": data(state.code(address)),
                    "storage": dict(_slots(state, address)),
                },
            )


def _slots(state: State, address: bytes) -> Iterator[tuple[str, str]]:
    start: bytes | None = ZERO_HASH
    while start is not None:
        page, start = state.storage_range(address, start, _PAGE)
        for _, slot, value in page:
            if slot is not None and slot != FORK_MARKER_SLOT:
                yield data(slot), data(value)


def encode_dump(document: dict[str, Any]) -> bytes:
    """Encode a dump in the format of `anvil_dumpState`."""
    return gzip.compress(orjson.dumps(document), 6, mtime=0)


def decode_dump(content: bytes) -> dict[str, Any]:
    """Decode a dump from a file or a request. The dump may be compressed."""
    try:
        if content[:2] == _GZIP_MAGIC:
            inflating = zlib.decompressobj(wbits=31)
            content = inflating.decompress(content, _MAX_BYTES)
            if inflating.unconsumed_tail:
                raise BadStateFile(f"The state is larger than {_MAX_BYTES} bytes")
        document = orjson.loads(content)
    except (zlib.error, orjson.JSONDecodeError) as error:
        raise BadStateFile(f"The state is neither JSON nor compressed JSON: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("accounts"), dict):
        raise BadStateFile("The state has no accounts")
    return document


async def load(dev: DevNode, document: dict[str, Any]) -> None:
    """Load the chain of a dump, and its accounts into the state of the head. Moves the clock forward to the time of the
    dump.
    """
    try:
        changes = [_change(address, account) for address, account in document["accounts"].items()]
        best = _number(document.get("best_block_number") or 0, 64)
        block = document.get("block") or {}
        timestamp = _number(block.get("timestamp") or 0, _TIME_BITS)
    except (ValueError, TypeError, AttributeError) as error:
        raise BadStateFile(f"The state cannot be read: {error}") from None
    try:
        blocks = decode_blocks(document, dev.chain.spec)
    except ValueError as error:
        log.warning("blocks of the state cannot be read, only its accounts are loaded reason=%s", error)
        blocks = []
    if not await dev.restore(blocks, changes):
        missing = best - dev.chain.head.number
        if 0 < missing <= _MAX_ADDED_BLOCKS:
            await dev.mine(missing)
        await dev.edit(*changes)
    if timestamp > dev.clock.shifted():
        dev.clock.set_time(timestamp)


def _change(address: str, account: dict[str, Any]) -> AccountOverride:
    slots = [(_word(slot), _word(value)) for slot, value in (account.get("storage") or {}).items()]
    return AccountOverride(
        address=decode_address(address),
        nonce=_number(account.get("nonce") or 0, 64),
        balance=_number(account.get("balance") or 0, 256),
        code=decode_bytes(str(account.get("code") or "0x")),
        state=slots,
    )


def _number(value: Any, bits: int) -> int:
    number = decode_int(value)
    if not 0 <= number < 2**bits:
        raise ValueError(f"{str(value)[:80]} is not within {bits} bits")
    return number


def _word(value: Any) -> bytes:
    return _number(value, 256).to_bytes(32, "big")
