"""Decodes headers and signed transactions from JSON, as JSON-RPC and state dumps have them.

All functions raise `KeyError`, `TypeError` or `ValueError` for a value that cannot be read.
"""

from __future__ import annotations

from typing import Any

from ophion.primitives.header import Header
from ophion.primitives.types import ADDRESS_LENGTH, HASH_LENGTH, Address, Hash32
from ophion.wallet.unsigned_transaction import LEGACY, UnsignedTransaction

_FIRST_PROTECTED_V = 35
_BLOOM_LENGTH = 256
_NONCE_LENGTH = 8


def decode_header(block: dict[str, Any]) -> Header:
    """Decode the header fields of a block. Fields of later forks may be missing."""
    header = Header(
        parent_hash=decode_word(block["parentHash"]),
        ommers_hash=decode_word(block["sha3Uncles"]),
        coinbase=decode_address(block["miner"]),
        state_root=decode_word(block["stateRoot"]),
        transactions_root=decode_word(block["transactionsRoot"]),
        receipts_root=decode_word(block["receiptsRoot"]),
        logs_bloom=_of_length(block["logsBloom"], _BLOOM_LENGTH),
        difficulty=decode_int(block.get("difficulty") or 0),
        number=decode_int(block["number"]),
        gas_limit=decode_int(block["gasLimit"]),
        gas_used=decode_int(block["gasUsed"]),
        timestamp=decode_int(block["timestamp"]),
        extra_data=decode_bytes(block["extraData"]),
        mix_hash=decode_word(block["mixHash"]) if block.get("mixHash") else bytes(32),
        nonce=_of_length(block["nonce"], _NONCE_LENGTH) if block.get("nonce") else bytes(8),
        base_fee_per_gas=_optional_int(block, "baseFeePerGas"),
        withdrawals_root=_optional_word(block, "withdrawalsRoot"),
        blob_gas_used=_optional_int(block, "blobGasUsed"),
        excess_blob_gas=_optional_int(block, "excessBlobGas"),
        parent_beacon_block_root=_optional_word(block, "parentBeaconBlockRoot"),
        requests_hash=_optional_word(block, "requestsHash"),
    )
    if not 0 <= header.number < 2**64:
        raise ValueError(f"number {str(block['number'])[:80]}")
    return header


def decode_transaction(fields: dict[str, Any], impersonated: Address | None = None) -> bytes:
    """Return the encoding of a signed transaction.

    A transaction of an impersonated account gets the signature of `impersonated_signature`.
    """
    kind = decode_int(fields.get("type") or 0)
    v = decode_int(fields["v"] if fields.get("yParity") is None else fields["yParity"])
    chain_id = None if fields.get("chainId") is None else decode_int(fields["chainId"])
    if kind == LEGACY and impersonated is None:
        chain_id = None if v < _FIRST_PROTECTED_V else (v - _FIRST_PROTECTED_V) // 2
        v -= 27 if chain_id is None else _FIRST_PROTECTED_V + 2 * chain_id
    unsigned = UnsignedTransaction(
        type=kind,
        chain_id=chain_id,
        nonce=decode_int(fields["nonce"]),
        gas=decode_int(fields["gas"]),
        to=None if fields.get("to") is None else decode_address(fields["to"]),
        value=decode_int(fields.get("value") or 0),
        input=decode_bytes(fields.get("input") or "0x"),
        gas_price=decode_int(fields.get("gasPrice") or 0),
        max_fee_per_gas=decode_int(fields.get("maxFeePerGas") or 0),
        max_priority_fee_per_gas=decode_int(fields.get("maxPriorityFeePerGas") or 0),
        access_list=[
            (decode_address(entry["address"]), [decode_word(slot) for slot in entry["storageKeys"]])
            for entry in fields.get("accessList") or ()
        ],
        max_fee_per_blob_gas=decode_int(fields.get("maxFeePerBlobGas") or 0),
        blob_hashes=[decode_word(one) for one in fields.get("blobVersionedHashes") or ()],
        authorizations=[_authorization(one) for one in fields.get("authorizationList") or ()],
    )
    if impersonated is not None:
        return unsigned.with_signature(impersonated_signature(impersonated))
    r, s = (decode_int(fields[name]).to_bytes(32, "big") for name in ("r", "s"))
    return unsigned.with_signature(r + s + bytes([v]))


def impersonated_signature(sender: Address) -> bytes:
    """Return the signature of an impersonated account. Its `r` is the sender, so that hashes differ between senders."""
    r = sender.rjust(32, b"\0") if any(sender) else b"\x01".rjust(32, b"\0")
    return r + b"\x01".rjust(32, b"\0") + b"\0"


def decode_int(value: Any) -> int:
    """Decode a number: JSON integer, hexadecimal or decimal text."""
    return int(value, 16 if value.startswith("0x") else 10) if isinstance(value, str) else int(value)


def decode_bytes(value: Any) -> bytes:
    """Decode hexadecimal text with or without `0x`."""
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} instead of hexadecimal text")
    return bytes.fromhex(value.removeprefix("0x"))


def decode_word(value: Any) -> Hash32:
    """Decode 32 bytes."""
    return _of_length(value, HASH_LENGTH)


def decode_address(value: Any) -> Address:
    """Decode 20 bytes."""
    return _of_length(value, ADDRESS_LENGTH)


def _of_length(value: Any, length: int) -> bytes:
    found = decode_bytes(value)
    if len(found) != length:
        raise ValueError(f"{len(found)} bytes instead of {length}")
    return found


def _authorization(one: dict[str, Any]) -> tuple[int, Address, int, int, int, int]:
    parity = one["v"] if one.get("yParity") is None else one["yParity"]
    numbers = (decode_int(value) for value in (one["nonce"], parity, one["r"], one["s"]))
    nonce, y, r, s = numbers
    return decode_int(one["chainId"]), decode_address(one["address"]), nonce, y, r, s


def _optional_int(block: dict[str, Any], name: str) -> int | None:
    return None if block.get(name) is None else decode_int(block[name])


def _optional_word(block: dict[str, Any], name: str) -> Hash32 | None:
    return None if block.get(name) is None else decode_word(block[name])
