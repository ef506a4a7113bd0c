"""Checks the arguments of `Chain` and its contracts, before anything is executed or sent.

Each function returns the value in the form that a backend takes, or raises `ArgumentError` with the name of the
argument, the value, and what is expected.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from operator import index
from pathlib import Path
from typing import Any, Final

from ophion.abi.addresses import address_bytes, shortened
from ophion.errors import AbiError
from ophion.sdk.backend import Block
from ophion.sdk.errors import ArgumentError

WORD_BYTES: Final = 32
UINT64: Final = 2**64
UINT256: Final = 2**256
MAX_BLOCKS: Final = 2**32
"""Limit of the number of blocks that one call may mine."""
MAX_INTERVAL_S: Final = 2**32
MAX_ACCOUNTS: Final = 100_000

_TAGS: Final = ("latest", "pending", "earliest", "safe", "finalized")


def whole_number(name: str, value: Any, bound: int, unit: str = "", first: int = 0) -> int:
    """Return a number from `first` to below `bound`. Accepts every integer type, such as those of NumPy."""
    number = _integer(value)
    if number is None or not first <= number < bound:
        top = f"2**{bound.bit_length() - 1} - 1" if bound > 2**32 else f"{bound - 1}"
        raise _unfit(name, value, f"a whole number{unit} from {first} to {top}")
    return number


def optional_number(name: str, value: Any, first: int = 0) -> int | None:
    """Return a number of at most 64 bits, or None."""
    return None if value is None else whole_number(name, value, UINT64, first=first)


def _integer(value: Any) -> int | None:
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return None
    try:
        return index(value)
    except TypeError:
        return None


def _unfit(name: str, value: object, expected: str) -> ArgumentError:
    return ArgumentError(f"{name}: {shortened(value)} is not {expected}.")


def wei(name: str, value: Any) -> int:
    """Return an amount of wei."""
    return whole_number(name, value, UINT256, " of wei")


def transaction_options(value: Any, gas: Any, nonce: Any) -> tuple[int, int | None, int | None]:
    """Return value, gas limit and nonce of a call or a transaction."""
    return (
        wei("value", value),
        None if gas is None else whole_number("gas", gas, UINT64),
        # EIP-2681: an account with the highest nonce cannot send
        None if nonce is None else whole_number("nonce", nonce, UINT64 - 1),
    )


def address(name: str, value: Any) -> bytes:
    """Return the bytes of an address, an account or a contract."""
    try:
        return address_bytes(value)
    except (AbiError, RecursionError):
        raise _unfit(name, value, "an address: an account, a contract, 20 bytes, or text as 0x and 40 digits") from None


def byte_string(name: str, value: Any) -> bytes:
    """Return bytes that are given as bytes or as hexadecimal text, with or without `0x`."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        try:
            return bytes.fromhex(value[2:] if value[:2] in ("0x", "0X") else value)
        except ValueError:
            pass
    raise _unfit(name, value, "bytes or hexadecimal text")


def word(name: str, value: Any) -> bytes:
    """Return 32 bytes, given as a whole number, or as at most 32 bytes."""
    number = _integer(value)
    if number is not None and 0 <= number < UINT256:
        return number.to_bytes(WORD_BYTES, "big")
    if isinstance(value, bytes | bytearray) and len(value) <= WORD_BYTES:
        return bytes(value).rjust(WORD_BYTES, b"\0")
    raise _unfit(name, value, "a whole number from 0 to 2**256 - 1, or at most 32 bytes")


def block(value: Any, name: str = "block") -> Block:
    """Return a block: a number, a tag, a number or hash as hexadecimal text, or None for the latest block."""
    if value is None:
        return None
    if isinstance(value, str):
        if value in _TAGS or _is_reference(value):
            return str(value)
    elif (number := _integer(value)) is not None and 0 <= number < UINT64:
        return number
    raise _unfit(name, value, "a block: a number, a hash, 'latest', 'pending' or 'earliest'")


def _is_reference(text: str) -> bool:
    digits = text[2:]
    is_hexadecimal = text.startswith("0x") and digits.isalnum() and all(one in _DIGITS for one in digits)
    return is_hexadecimal and (len(digits) <= 16 or len(digits) == 2 * WORD_BYTES)


_DIGITS: Final = frozenset("0123456789abcdefABCDEF")


def transaction_hash(value: Any) -> str:
    """Return the hash of a transaction as text. Accepts an object with a `hash`, such as a receipt, text or bytes."""
    found = getattr(value, "hash", value)
    if isinstance(found, bytes | bytearray) and len(found) == WORD_BYTES:
        return "0x" + found.hex()
    if isinstance(found, str) and len(found) == 2 + 2 * WORD_BYTES and _is_reference(found):
        return str(found)
    raise _unfit("transaction", value, "a receipt or the hash of a transaction (0x and 64 digits)")


def file_path(name: str, value: Any) -> Path:
    """Return the path of a file or a directory."""
    if isinstance(value, str | os.PathLike) and value != "":
        path = Path(value)
        if "\0" not in str(path):
            return path
    raise _unfit(name, value, "a path")


def text(name: str, value: Any) -> str | None:
    """Return text, or None."""
    if value is None or isinstance(value, str):
        return value
    raise _unfit(name, value, "text")


def ether(name: str, value: Any) -> float:
    """Return an amount of ether. It may have a fraction."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**15:
        return value
    raise _unfit(name, value, "a number of ether from 0 to 10**15")


def url(value: Any) -> str:
    """Return the address of a node."""
    if isinstance(value, str):
        return str(value)
    raise _unfit("url", value, "the address of a node, such as http://127.0.0.1:8545")


def method_name(value: Any) -> str:
    """Return the name of a JSON-RPC method."""
    if isinstance(value, str):
        return value
    raise _unfit("method", value, "the name of a JSON-RPC method, such as eth_blockNumber")


def listener(host: Any, port: Any) -> tuple[str, int]:
    """Return host and port of a listener."""
    if not isinstance(host, str):
        raise _unfit("host", host, "a host name or an address, such as 127.0.0.1")
    return host, whole_number("port", port, 2**16)


def mapping(name: str, value: Any) -> Mapping[Any, Any]:
    """Return a dictionary; for None, an empty dictionary."""
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    raise _unfit(name, value, "a dictionary whose keys are addresses")
