"""Wire types of private transactions: enclave keys and group ids, in base64."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Struct

from ophion.enclave.encoding import read_key
from ophion.enclave.interface import KEY_SIZE, MAX_MEMBERS
from ophion.errors import RpcError
from ophion.rpc.errors import invalid_params
from ophion.rpc.schema.wire_types import WireType, decode_data, decode_text

_KEY_SCHEMA: Final = {"type": "string", "pattern": "^[A-Za-z0-9+/]{43}=$"}


def decode_key(value: object) -> bytes:
    """Decode a 32-byte key or group id from base64."""
    try:
        return read_key(value)
    except ValueError:
        raise invalid_params(f"base64 of {KEY_SIZE} bytes is expected") from None


def decode_keys(value: object) -> tuple[bytes, ...]:
    """Decode an array of enclave keys."""
    if not isinstance(value, list) or len(value) > MAX_MEMBERS:
        raise invalid_params(f"an array of at most {MAX_MEMBERS} keys is expected")
    return tuple(decode_key(member) for member in value)


def decode_signed(value: object) -> bytes:
    """Decode a signed transaction in hexadecimal. Malformed text becomes empty bytes, which is no valid transaction."""
    try:
        return decode_data(value)
    except RpcError:
        return b""


class GroupRequest(Struct, frozen=True):
    """A privacy group to create."""

    addresses: tuple[bytes, ...]
    name: str | None = None
    description: str | None = None


def decode_group_request(value: object) -> GroupRequest:
    """Decode `{addresses, name, description}`, or only the addresses, when the parameters are positional."""
    if not isinstance(value, dict):
        return GroupRequest(decode_keys(value))
    return GroupRequest(decode_keys(value.get("addresses")), _text(value.get("name")), _text(value.get("description")))


def _text(value: Any) -> str | None:
    return None if value is None else decode_text(value)


def _keys_schema() -> dict[str, Any]:
    return {"type": "array", "items": _KEY_SCHEMA}


GroupIdParam = Annotated[bytes, WireType("group id", "id of a privacy group in base64", _KEY_SCHEMA, decode_key)]
KeyParam = Annotated[bytes, WireType("key", "public key of an enclave in base64", _KEY_SCHEMA, decode_key)]
KeysParam = Annotated[
    tuple[bytes, ...], WireType("keys", "public keys of enclaves in base64", _keys_schema(), decode_keys)
]
SignedPrivateParam = Annotated[bytes, WireType("data", "signed private transaction", {"type": "string"}, decode_signed)]
GroupRequestParam = Annotated[
    GroupRequest,
    WireType(
        "group",
        "`{addresses, name, description}`, or an array of addresses followed by name and description",
        {
            "anyOf": [
                _keys_schema(),
                {
                    "type": "object",
                    "properties": {
                        "addresses": _keys_schema(),
                        "name": {"type": "string"},
                        "description": {"type": "string"},
                    },
                },
            ]
        },
        decode_group_request,
    ),
]
