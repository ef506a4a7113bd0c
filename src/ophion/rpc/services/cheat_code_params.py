"""The decorator and the lenient parameter decoders for methods of development nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from ophion.dev.cheat_codes import DevNode
from ophion.dev.clock import TimestampTooLow
from ophion.errors import RpcError
from ophion.rpc.errors import INVALID_PARAMS_CODE, SERVER_ERROR_CODE, invalid_params
from ophion.rpc.schema.method import Handler
from ophion.rpc.schema.registry import group_of, method
from ophion.rpc.schema.wire_types import WireType, decode_data, encode_json
from ophion.rpc.services.context import RpcContext

F = TypeVar("F", bound=Handler)

_MAX_BITS = 256
_MAX_TIME_BITS = 40
"""Limit of one time value in bits. The sum of several time values must fit a timestamp of 64 bits."""
_GROUPS = ("anvil", "evm", "hardhat")


def cheat_code(*names: str) -> Callable[[F], F]:
    """Declare a method of development nodes under all its names, each in the group of its prefix.

    No request timeout applies, because mining many blocks may take longer than the timeout. A name with a prefix that
    is not a group (`tenderly_`) belongs to the group of the preceding name in `names`.
    """

    def declare(function: F) -> F:
        declared: list[tuple[str, list[str]]] = []
        for name in names:
            group = group_of(name)
            known = next((one for one in declared if group_of(one[0]) == group), None)
            if known is None and group in _GROUPS:
                declared.append((name, []))
            else:
                (known or declared[-1])[1].append(name)
        for name, aliases in declared:
            function = method(name, aliases=aliases, needs={"dev"}, has_timeout=False)(function)
        return function

    return declare


def dev_of(ctx: RpcContext) -> DevNode:
    """Return the development node. Only methods that require a development node call this."""
    assert ctx.dev is not None
    return ctx.dev


def decode_number(value: object) -> int:
    """Decode a number: JSON integer, hexadecimal or decimal text."""
    if type(value) is int and value >= 0:
        number = value
    elif type(value) is str:
        try:
            number = int(value, 16 if value[:2] in ("0x", "0X") else 10) if value not in ("0x", "") else 0
        except ValueError:
            raise invalid_params(f"number: not a number: '{value}'") from None
    else:
        raise invalid_params("number: an integer, or hexadecimal or decimal text is expected")
    if number < 0 or number.bit_length() > _MAX_BITS:
        raise invalid_params("number: not within 256 bits")
    return number


def decode_word(value: object) -> bytes:
    """Decode 32 bytes, padded on the left; a number is accepted too."""
    if type(value) is str and value[:2] == "0x" and len(value) % 2 == 0 and len(value) <= 66:
        return decode_data(value).rjust(32, b"\0")
    return decode_number(value).to_bytes(32, "big")


def decode_flag(value: object) -> bool:
    """Decode a boolean."""
    if type(value) is not bool:
        raise invalid_params("flag: true or false is expected")
    return value


_NUMBER = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
NumberParam = Annotated[int, WireType("number", "integer, or hexadecimal or decimal text", _NUMBER, decode_number)]
WordParam = Annotated[bytes, WireType("word", "32 bytes, or a number", _NUMBER, decode_word)]
FlagParam = Annotated[bool, WireType("boolean", "true or false", {"type": "boolean"}, decode_flag)]
AnyParam = Annotated[Any, WireType("value", "any value", {}, lambda value: value)]
Nothing = Annotated[None, WireType("null", "nothing", {"type": "null"}, encode=encode_json)]
Json = Annotated[Any, WireType("value", "any value", {}, encode=encode_json)]
Integer = Annotated[int, WireType("integer", "JSON number", {"type": "integer"}, encode=encode_json)]


def check_time(seconds: int) -> int:
    """Return a time value in seconds. Raises `RpcError` if the value is too large."""
    if seconds.bit_length() > _MAX_TIME_BITS:
        raise invalid_params(f"time: not within {_MAX_TIME_BITS} bits")
    return seconds


def too_low(dev: DevNode, error: TimestampTooLow) -> RpcError:
    """Return the error for a timestamp below the head's, with the text of the client that the preset imitates."""
    if dev.identity.preset != "hardhat":
        return RpcError(INVALID_PARAMS_CODE, error.message)
    relation = f"lower than the previous block's timestamp {error.last}"
    if error.timestamp == error.last:
        relation = (
            "equal to the previous block's timestamp. Enable the 'allowBlocksWithSameTimestamp' option to allow this"
        )
    return RpcError(SERVER_ERROR_CODE, f"Timestamp {error.timestamp} is {relation}")
