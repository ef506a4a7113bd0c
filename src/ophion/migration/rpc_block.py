"""Encodes the JSON block of a node as RLP, for nodes without debug_getRawBlock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from ophion.errors import DecodeError
from ophion.primitives import rlp
from ophion.primitives.header import Header
from ophion.primitives.rlp import Encodable

Json = dict[str, Any]

_LEGACY, _ACCESS_LIST, _FEE_MARKET, _BLOB, _SET_CODE = range(5)


def encode_json_header(block: Json) -> Header:
    """Encode the header of a JSON block or uncle. Raises `DecodeError`, which names a missing JSON key."""
    number, data = _number, _data
    return Header(
        parent_hash=data(block, "parentHash"),
        ommers_hash=data(block, "sha3Uncles"),
        coinbase=data(block, "miner"),
        state_root=data(block, "stateRoot"),
        transactions_root=data(block, "transactionsRoot"),
        receipts_root=data(block, "receiptsRoot"),
        logs_bloom=data(block, "logsBloom"),
        difficulty=number(block, "difficulty"),
        number=number(block, "number"),
        gas_limit=number(block, "gasLimit"),
        gas_used=number(block, "gasUsed"),
        timestamp=number(block, "timestamp"),
        extra_data=data(block, "extraData"),
        mix_hash=_data(block, "mixHash") if block.get("mixHash") is not None else bytes(32),
        nonce=data(block, "nonce"),
        base_fee_per_gas=_optional(block, "baseFeePerGas", number),
        withdrawals_root=_optional(block, "withdrawalsRoot", data),
        blob_gas_used=_optional(block, "blobGasUsed", number),
        excess_blob_gas=_optional(block, "excessBlobGas", number),
        parent_beacon_block_root=_optional(block, "parentBeaconBlockRoot", data),
        requests_hash=_optional(block, "requestsHash", data),
    )


def encode_json_block(block: Json, uncles: Sequence[Json]) -> bytes:
    """Encode a JSON block with full transactions as RLP. The import later checks the roots."""
    header = encode_json_header(block)
    transactions = [encode_json_transaction(transaction) for transaction in block.get("transactions") or ()]
    parts = [
        header.encode(),
        rlp.list_of(transactions),
        rlp.list_of([encode_json_header(uncle).encode() for uncle in uncles]),
    ]
    if header.withdrawals_root is not None:
        parts.append(rlp.encode([_withdrawal(entry) for entry in block.get("withdrawals") or ()]))
    return rlp.list_of(parts)


def encode_json_transaction(transaction: Json) -> bytes:
    """Encode a transaction as it appears in a block: a list, or a byte string for a typed transaction."""
    number, data = _number, _data
    kind = number(transaction, "type") if transaction.get("type") is not None else _LEGACY
    nonce, gas, value = (number(transaction, name) for name in ("nonce", "gas", "value"))
    to = data(transaction, "to") if transaction.get("to") else b""
    payload = data(transaction, "input")
    signature = [number(transaction, "r"), number(transaction, "s")]
    if kind == _LEGACY:
        price = number(transaction, "gasPrice")
        return rlp.encode([nonce, price, gas, to, value, payload, number(transaction, "v"), *signature])
    parity = _parity(transaction)
    access: list[Encodable] = [
        [bytes.fromhex(entry["address"][2:]), [bytes.fromhex(key[2:]) for key in entry["storageKeys"]]]
        for entry in transaction.get("accessList") or ()
    ]
    fields: list[Encodable] = [number(transaction, "chainId"), nonce]
    if kind == _ACCESS_LIST:
        fields.append(number(transaction, "gasPrice"))
    elif kind in (_FEE_MARKET, _BLOB, _SET_CODE):
        fields += [number(transaction, "maxPriorityFeePerGas"), number(transaction, "maxFeePerGas")]
    else:
        raise DecodeError(f"transaction type {kind} is not known")
    fields += [gas, to, value, payload, access]
    if kind == _BLOB:
        hashes = [bytes.fromhex(text[2:]) for text in _member(transaction, "blobVersionedHashes")]
        fields += [number(transaction, "maxFeePerBlobGas"), hashes]
    elif kind == _SET_CODE:
        fields.append([_authorization(entry) for entry in _member(transaction, "authorizationList")])
    return rlp.encode_bytes(bytes([kind]) + rlp.encode([*fields, parity, *signature]))


def _authorization(entry: Json) -> list[Encodable]:
    numbers = [_number(entry, name) for name in ("chainId", "nonce", "r", "s")]
    return [numbers[0], _data(entry, "address"), numbers[1], _parity(entry), *numbers[2:]]


def _withdrawal(entry: Json) -> list[Encodable]:
    index, validator, amount = (_number(entry, name) for name in ("index", "validatorIndex", "amount"))
    return [index, validator, _data(entry, "address"), amount]


_PARITY_NAMES: Final = ("yParity", "v")


def _parity(entry: Json) -> int:
    name = next((name for name in _PARITY_NAMES if entry.get(name) is not None), _PARITY_NAMES[0])
    return _number(entry, name)


def _optional(block: Json, name: str, read: Callable[[Json, str], Any]) -> Any:
    return None if block.get(name) is None else read(block, name)


def _member(entry: Json, name: str) -> Any:
    if entry.get(name) is None:
        raise DecodeError(f"the JSON block has no member {name}")
    return entry[name]


def _number(entry: Json, name: str) -> int:
    try:
        return int(_member(entry, name), 16)
    except (TypeError, ValueError):
        raise DecodeError(f"the member {name} is not a number") from None


def _data(entry: Json, name: str) -> bytes:
    try:
        return bytes.fromhex(_member(entry, name).removeprefix("0x"))
    except (AttributeError, ValueError):
        raise DecodeError(f"the member {name} is not hexadecimal") from None
