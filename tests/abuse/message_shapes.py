"""Payloads of every shape for every kind of message: many items, deep nesting, long lengths, truncated, maximal."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from ophion.peers.eth.messages import MAX_BYTES, MAX_MESSAGE, Code, encode_new_block
from ophion.primitives import rlp

NESTING = 3000


def payloads(size: int) -> Iterator[tuple[str, bytes]]:
    """Yield payload shapes of at most about `size` bytes."""
    inner = max(size - 64, 8)
    yield "one-byte items", rlp.list_of([b"\x01" * inner])
    yield "empty lists", rlp.list_of([b"\xc0" * inner])
    yield "pairs", rlp.list_of([b"\xc2\x01\x01" * (inner // 3)])
    yield "two lists of items", rlp.list_of([rlp.list_of([b"\x01" * (inner // 2 - 16)])] * 2)
    yield "an id and items", rlp.list_of([b"\x01", rlp.list_of([b"\x01" * (inner - 16)])])
    yield "an id and tiny transactions", rlp.list_of([b"\x01", rlp.list_of([_tiny() * ((inner - 16) // len(_tiny()))])])
    yield "hashes", rlp.list_of([b"\xa0" + bytes(32)] * (inner // 33))
    yield "one long string", rlp.encode_bytes(bytes(inner))
    yield "noise", os.urandom(inner)
    yield "a length beyond the end", b"\xfb\xff\xff\xff\xff" + bytes(min(inner, 1000))
    yield "truncated", rlp.list_of([b"\x01" * inner])[: inner // 2]
    yield "deep nesting", nested(min(NESTING, inner))
    yield "empty", b""


def nested(depth: int) -> bytes:
    value = b"\xc0"
    for _ in range(depth):
        value = rlp.list_of([value])
    return value


def eth_messages(max_bytes: int = MAX_MESSAGE) -> Iterator[tuple[str, int, bytes]]:
    """Yield (name, code, payload) of each kind and shape, up to the size limit of the message."""
    for code in Code:
        if code in (Code.GET_NODE_DATA, Code.NODE_DATA, Code.BLOCK_RANGE_UPDATE):
            continue  # eth/68 has no message with this code
        for name, payload in payloads(min(max_bytes, MAX_BYTES[code])):
            yield f"{code.label}: {name}", int(code), payload
    for name, payload in payloads(min(max_bytes, MAX_BYTES[Code.NEW_BLOCK]) - 64):
        yield f"NewBlock around: {name}", int(Code.NEW_BLOCK), encode_new_block(payload, 1)
    size = min(max_bytes, MAX_BYTES[Code.NEW_BLOCK]) - 2048
    for number, transactions in enumerate(
        (b"\x01" * size, _tiny() * (size // len(_tiny())), _long() * (size // len(_long())))
    ):
        yield f"NewBlock without a parent: {number}", int(Code.NEW_BLOCK), encode_new_block(_orphan(transactions), 2)


def _orphan(transactions: bytes) -> bytes:
    """Return a block with a low number whose parent does not exist."""
    header: list[rlp.Encodable] = [os.urandom(32), bytes(32), bytes(20), bytes(32), bytes(32), bytes(32), bytes(256)]
    header += [1, 3, 10**15, 0, int(time.time()), rlp.encode([bytes(32), [bytes(20)], b"", bytes(4), []]), bytes(32)]
    return rlp.list_of([rlp.encode([*header, bytes(8)]), rlp.list_of([transactions]), rlp.EMPTY_LIST])


def _long() -> bytes:
    """Return the shortest transaction whose signature values have full length."""
    return rlp.encode([1, 1, 21000, bytes(20), 1, b"", 28, b"\x11" * 32, b"\x11" * 32])


def _tiny() -> bytes:
    return rlp.encode([b"", b"", b"", b"", b"", b"", 27, 1, 1])
