"""Payloads of every shape for every kind of message: many items, deep nesting, long lengths, truncated, maximal.

`eth_messages` has the messages of eth/68; `ibft2_messages` and `qbft_messages` those of consensus; `other_messages`
those of all other sub-protocols.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import NamedTuple

from ophion.peers.consensus.identity import MAX_SENDERS_BYTES
from ophion.peers.consensus.validator_links import MAX_LINKS, MAX_REPORT_BYTES
from ophion.peers.eth.messages import MAX_BYTES, MAX_MESSAGE, Code, encode_new_block
from ophion.peers.priv import messages as priv
from ophion.peers.snap import messages as snap
from ophion.primitives import rlp

NESTING = 3000
CONSENSUS_CODES = 4
CONSENSUS_MAX_BYTES = 1 << 20


class Message(NamedTuple):
    """One message of a sub-protocol other than eth/68."""

    name: str
    protocol: bytes
    version: int
    code: int
    """Message code, relative to the first code of the sub-protocol."""
    payload: bytes


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


def ibft2_messages(max_bytes: int = MAX_MESSAGE) -> Iterator[Message]:
    """Yield the messages of IBFT 2.0 in each shape."""
    for code in range(CONSENSUS_CODES):
        yield from _shaped(b"IBF", 1, code, str(code), min(max_bytes, CONSENSUS_MAX_BYTES))


def qbft_messages(max_bytes: int = MAX_MESSAGE) -> Iterator[Message]:
    """Yield the messages of QBFT in each shape."""
    for code in range(CONSENSUS_CODES):
        yield from _shaped(b"istanbul", 100, 0x12 + code, str(code), min(max_bytes, CONSENSUS_MAX_BYTES))


def other_messages(max_bytes: int = MAX_MESSAGE, root: bytes = bytes(32)) -> Iterator[Message]:
    """Yield messages of the other sub-protocols, in each shape and at most of their size limit.

    `root` is the state root for which the snap requests ask.
    """
    for version in (1, 2, 3):
        yield from _shaped(b"vid", version, 0, "proof", 69)
    yield from _shaped(b"vid", 2, 1, "links", min(max_bytes, MAX_REPORT_BYTES))
    yield Message("vid/2 links: all", b"vid", 2, 1, rlp.encode([os.urandom(20) for _ in range(MAX_LINKS)]))
    yield from _shaped(b"vid", 3, 2, "senders", min(max_bytes, MAX_SENDERS_BYTES))
    for snap_code, size in snap.MAX_BYTES.items():
        yield from _shaped(b"snap", 1, int(snap_code), snap_code.label, min(max_bytes, size))
    for request_code, payload in snap_requests(root):
        yield Message(f"snap/1 {request_code.label}: largest", b"snap", 1, int(request_code), payload)
    for priv_code, size in priv.MAX_BYTES.items():
        yield from _shaped(b"priv", 1, int(priv_code), priv_code.name.lower(), min(max_bytes, size))
    for node_data in (Code.GET_NODE_DATA, Code.NODE_DATA):
        yield from _shaped(b"eth", 66, int(node_data), node_data.label, min(max_bytes, MAX_BYTES[node_data]))
    update = Code.BLOCK_RANGE_UPDATE
    yield from _shaped(b"eth", 69, int(update), update.label, min(max_bytes, MAX_BYTES[update]))


def _shaped(protocol: bytes, version: int, code: int, label: str, size: int) -> Iterator[Message]:
    for name, payload in payloads(size):
        yield Message(f"{protocol.decode()}/{version} {label}: {name}", protocol, version, code, payload)


def snap_requests(root: bytes) -> Iterator[tuple[snap.Code, bytes]]:
    """Yield correct requests with as many items as their size limits permit."""
    size, end = 1 << 40, b"\xff" * 32
    hashes = [os.urandom(32) for _ in range(3800)]
    yield snap.Code.GET_ACCOUNT_RANGE, rlp.encode([1, root, bytes(32), end, size])
    yield snap.Code.GET_STORAGE_RANGES, rlp.encode([2, root, hashes, b"", b"", size])
    yield snap.Code.GET_BYTE_CODES, rlp.encode([3, hashes, size])
    paths = [b"\0" + one for one in hashes]
    yield snap.Code.GET_TRIE_NODES, rlp.encode([4, root, [[path] for path in paths[:2000]], size])
    yield snap.Code.GET_TRIE_NODES, rlp.encode([5, root, [[hashes[0], *paths]], size])


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
