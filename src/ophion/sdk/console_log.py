"""Text of `console.log` calls of Solidity contracts.

The selector defines the types of the arguments. All combinations of up to four basic types exist; their selectors are
computed at first use.
"""

from __future__ import annotations

from functools import cache
from itertools import product

from ophion.abi.codec import Codec
from ophion.abi.type_parser import parse_type
from ophion.errors import AbiError
from ophion.native.crypto import keccak256

_TYPES = ("uint256", "string", "bool", "address")
_SINGLE = ("int256", "bytes", *(f"bytes{size}" for size in range(1, 33)))


@cache
def _signatures() -> dict[bytes, Codec]:
    lists = [types for count in range(5) for types in product(_TYPES, repeat=count)]
    lists += [(one,) for one in _SINGLE]
    found = {}
    for types in lists:
        text = f"({','.join(types)})"
        codec = parse_type(text)
        found[keccak256(f"log{text}".encode())[:4]] = codec
        # also accept the selectors of older libraries, which write `uint` and `int`
        found[keccak256(f"log{text.replace('256', '')}".encode())[:4]] = codec
    return found


def console_text(data: bytes) -> str:
    """Return the line that a call of the console prints."""
    codec = _signatures().get(data[:4])
    try:
        values = () if codec is None else codec.decode(data[4:], 0)
    except AbiError:
        codec = None
    if codec is None:
        return f"console.log: unknown data 0x{data.hex()}"
    return " ".join("0x" + one.hex() if isinstance(one, bytes) else str(one) for one in values)
