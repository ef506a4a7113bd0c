"""Scalar wire types, each with decoder, encoder, JSON schema and description.

A handler names wire types in its signature (`address: AddressParam`, `-> Quantity`) and receives plain Python values.
The registry reads the `WireType` from the annotation. The decoders accept exactly what Pantheon 1.2 accepts: for
example missing `0x`, short addresses, decimal block numbers (json-rpc.md 3.1 and 3.2). A decoder raises the -32602
error itself, with the reason in `data`.
"""

from __future__ import annotations

from binascii import unhexlify
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeAlias

import orjson
from msgspec import Struct

from ophion.primitives.hexcodec import HexError, parse_number
from ophion.primitives.types import Address, BlockTag, Hash32
from ophion.rpc.errors import invalid_params

Schema: TypeAlias = Mapping[str, Any]

_INDEX_BITS: Final = 31
_MAX_DIGITS: Final = 11
_BLOCK_NUMBER_BITS: Final = 63
_QUANTITY_BITS: Final = 256
_NULL: Final = b"null"


class WireType(Struct, frozen=True, eq=False):
    """One wire type of parameters or results, with decoder, encoder, JSON schema and description."""

    name: str
    description: str
    schema: Schema
    decode: Callable[[Any], Any] | None = None
    encode: Callable[[Any], bytes] | None = None


class CanonicalHash(Struct, frozen=True):
    """A block hash that must be on the canonical chain (EIP-1898, `requireCanonical`)."""

    hash: Hash32


BlockId: TypeAlias = BlockTag | int | Hash32 | CanonicalHash
"""A decoded block parameter. A negative number matches no block."""

_TAGS: Final[Mapping[str, BlockTag]] = {tag.value: tag for tag in BlockTag}


# --- decoders ------------------------------------------------------------------------------------


def _digits(value: object, what: str) -> str:
    """Return the hex digits of a string without the optional prefix `0x`; `0X` is not accepted (json-rpc.md 3.1)."""
    if type(value) is not str:
        raise invalid_params(f"{what}: a string is expected")
    return value[2:] if value[:2] == "0x" else value


def _bytes_of(digits: str, what: str) -> bytes:
    try:
        return unhexlify(digits)
    except ValueError:
        raise invalid_params(f"{what}: not hexadecimal, or half a byte") from None


def decode_address(value: object) -> Address:
    """Decode 20 bytes. Shorter input is padded on the left. The EIP-55 checksum is not verified."""
    if type(value) is str and len(value) == 42 and value[:2] == "0x":  # fast path: 20 bytes with the prefix 0x
        return _bytes_of(value[2:], "address")
    digits = _digits(value, "address")
    if len(digits) > 40:
        raise invalid_params("address: more than 20 bytes")
    return _bytes_of(digits.rjust(40, "0"), "address")


def decode_hash(value: object) -> Hash32:
    """Decode exactly 32 bytes."""
    digits = _digits(value, "hash")
    if len(digits) != 64:
        raise invalid_params("hash: exactly 32 bytes are expected")
    return _bytes_of(digits, "hash")


def decode_slot(value: object) -> Hash32:
    """Decode a storage slot: at most 32 bytes, padded on the left."""
    digits = _digits(value, "storage position")
    if len(digits) > 64:
        raise invalid_params("storage position: more than 32 bytes")
    return _bytes_of(digits.rjust(64, "0"), "storage position")


def decode_data(value: object) -> bytes:
    """Decode any number of whole bytes."""
    return _bytes_of(_digits(value, "data"), "data")


def decode_quantity(value: object) -> int:
    """Decode a number of at most 256 bits: `0x` text or a JSON integer."""
    if type(value) is str and value[:2] == "0x":
        return _number(value, _QUANTITY_BITS, "quantity")
    if type(value) is int and value >= 0:
        return value
    raise invalid_params("quantity: a hexadecimal number with 0x is expected")


def decode_gas(value: object) -> int:
    """Decode a number like `decode_quantity`, but also accept decimal text."""
    if type(value) is str and value[:2] != "0x":
        return _number(value, _QUANTITY_BITS, "gas")
    return decode_quantity(value)


def decode_index(value: object) -> int:
    """Decode an index from 0 to 2**31 - 1: hex, decimal or octal text, or a JSON integer."""
    if type(value) is str:
        return _number(value, _INDEX_BITS, "index")
    if type(value) is int and 0 <= value < 1 << _INDEX_BITS:
        return value
    raise invalid_params("index: a number from 0 to 2147483647 is expected")


def decode_integer(value: object) -> int:
    """Decode a small integer: a JSON integer, or decimal or hexadecimal text."""
    if type(value) is int:
        return value
    if type(value) is str:
        return _number(value, _BLOCK_NUMBER_BITS, "integer")
    raise invalid_params("integer: a number is expected")


def decode_decimal(value: object) -> int:
    """Decode a small integer: a JSON integer or decimal text, not hexadecimal (json-rpc.md 3.1)."""
    if type(value) is int:
        return value
    if type(value) is str and len(value) <= _MAX_DIGITS and value.isascii() and value.removeprefix("-").isdecimal():
        return int(value)
    raise invalid_params("integer: a decimal number is expected")


def decode_boolean(value: object) -> bool:
    """Decode `true` or `false`, also as text."""
    if value is True or value == "true":
        return True
    if value is False or value == "false":
        return False
    raise invalid_params("boolean: true or false is expected")


def decode_text(value: object) -> str:
    """Decode a string."""
    if type(value) is str:
        return value
    raise invalid_params("a string is expected")


def decode_block_number(value: object) -> BlockTag | int:
    """Decode a tag or a number in any form that Pantheon 1.2 accepts. A hash is an error."""
    if type(value) is str:
        tag = _TAGS.get(value) or _TAGS.get(value.lower())
        return tag if tag is not None else _signed_number(value)
    if type(value) is int and value.bit_length() <= _BLOCK_NUMBER_BITS:
        return value
    raise invalid_params("block: a tag or a number is expected")


def decode_block(value: object) -> BlockId:
    """Decode a tag, a number, a 32-byte hash, or an EIP-1898 object."""
    if type(value) is str:
        tag = _TAGS.get(value)
        if tag is not None:
            return tag
        if len(value) == (66 if value[:2] == "0x" else 64):
            return decode_hash(value)
    elif type(value) is dict:
        return _block_object(value)
    return decode_block_number(value)


def _block_object(value: dict[str, object]) -> BlockId:
    number, block_hash = value.get("blockNumber"), value.get("blockHash")
    if (number is None) == (block_hash is None):
        raise invalid_params("block: either blockHash or blockNumber is expected")
    if block_hash is None:
        return decode_block_number(number)
    decoded = decode_hash(block_hash)
    required = value.get("requireCanonical")
    return CanonicalHash(decoded) if required is not None and decode_boolean(required) else decoded


def _signed_number(text: str) -> int:
    if text[:1] == "-":
        return -_number(text[1:], _BLOCK_NUMBER_BITS, "block")
    return _number(text[1:] if text[:1] == "+" else text, _BLOCK_NUMBER_BITS, "block")


def _number(text: str, bits: int, what: str) -> int:
    try:
        return parse_number(text, bits)
    except HexError as error:
        raise invalid_params(f"{what}: {error.problem}") from None


# --- encoders ------------------------------------------------------------------------------------


def encode_quantity(value: int) -> bytes:
    """Encode a number without leading zeros; zero is `0x0`."""
    return b'"%#x"' % value


def encode_data(value: bytes) -> bytes:
    """Encode bytes as hexadecimal; empty bytes are `0x`."""
    return f'"0x{value.hex()}"'.encode()


def encode_spliced(value: bytes) -> bytes:
    """Return JSON text that the Rust extension has rendered, unchanged."""
    return value


def encode_json(value: object) -> bytes:
    """Encode any JSON value. Embedded JSON text is copied."""
    return orjson.dumps(value)


def optional(encode: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Return an encoder that writes None as `null` and all other values with `encode`."""

    def encode_optional(value: Any) -> bytes:
        return _NULL if value is None else encode(value)

    return encode_optional


# --- the types -----------------------------------------------------------------------------------

_HEX: Final = "^0x[0-9a-f]*$"
_QUANTITY_SCHEMA: Final[Schema] = {"type": "string", "pattern": "^0x(0|[1-9a-f][0-9a-f]*)$"}
_TAG_SCHEMA: Final[Schema] = {"enum": list(_TAGS)}
_HASH_SCHEMA: Final[Schema] = {"type": "string", "pattern": "^0x[0-9a-f]{64}$"}
_ADDRESS_SCHEMA: Final[Schema] = {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"}
_BLOCK_NUMBER_SCHEMA: Final[Schema] = {"anyOf": [_TAG_SCHEMA, _QUANTITY_SCHEMA]}
_BLOCK_SCHEMA: Final[Schema] = {
    "anyOf": [
        _TAG_SCHEMA,
        _QUANTITY_SCHEMA,
        _HASH_SCHEMA,
        {
            "type": "object",
            "properties": {
                "blockHash": _HASH_SCHEMA,
                "blockNumber": _QUANTITY_SCHEMA,
                "requireCanonical": {"type": "boolean"},
            },
        },
    ]
}

AddressParam = Annotated[Address, WireType("address", "20-byte address", _ADDRESS_SCHEMA, decode_address)]
HashParam = Annotated[Hash32, WireType("hash", "32-byte hash", _HASH_SCHEMA, decode_hash)]
SlotParam = Annotated[
    Hash32, WireType("slot", "storage position of at most 32 bytes", {"type": "string", "pattern": _HEX}, decode_slot)
]
DataParam = Annotated[bytes, WireType("data", "bytes in hexadecimal", {"type": "string", "pattern": _HEX}, decode_data)]
QuantityParam = Annotated[int, WireType("quantity", "number in hexadecimal", _QUANTITY_SCHEMA, decode_quantity)]
IndexParam = Annotated[int, WireType("index", "position, counted from 0", _QUANTITY_SCHEMA, decode_index)]
DecimalParam = Annotated[
    int,
    WireType("decimal integer", "number", {"anyOf": [{"type": "integer"}, {"type": "string"}]}, decode_decimal),
]
IntegerParam = Annotated[
    int, WireType("integer", "number", {"anyOf": [{"type": "integer"}, _QUANTITY_SCHEMA]}, decode_integer)
]
BooleanParam = Annotated[bool, WireType("boolean", "true or false", {"type": "boolean"}, decode_boolean)]
TextParam = Annotated[str, WireType("string", "text", {"type": "string"}, decode_text)]
BlockNumberParam = Annotated[
    BlockTag | int,
    WireType("block number", "block number (hex or decimal) or tag", _BLOCK_NUMBER_SCHEMA, decode_block_number),
]
BlockParam = Annotated[
    BlockId,
    WireType("block", "block number (hex or decimal), tag, hash, or EIP-1898 object", _BLOCK_SCHEMA, decode_block),
]

Quantity = Annotated[int, WireType("quantity", "number in hexadecimal", _QUANTITY_SCHEMA, encode=encode_quantity)]
Data = Annotated[
    bytes, WireType("data", "bytes in hexadecimal", {"type": "string", "pattern": _HEX}, encode=encode_data)
]
HashResult = Annotated[Hash32, WireType("hash", "32-byte hash", _HASH_SCHEMA, encode=encode_data)]
AddressResult = Annotated[Address, WireType("address", "20-byte address", _ADDRESS_SCHEMA, encode=encode_data)]
Boolean = Annotated[bool, WireType("boolean", "true or false", {"type": "boolean"}, encode=encode_json)]
Text = Annotated[str, WireType("string", "text", {"type": "string"}, encode=encode_json)]


def object_result(name: str, description: str, schema: Schema) -> WireType:
    """Return the wire type of a result that Python builds as a JSON value."""
    return WireType(name, description, schema, encode=encode_json)


def spliced_result(name: str, description: str, schema: Schema) -> WireType:
    """Return the wire type of a result that is already JSON text."""
    return WireType(name, description, schema, encode=encode_spliced)
