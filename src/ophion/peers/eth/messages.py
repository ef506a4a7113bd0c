"""The eth messages as typed values with their encoding (networking.md 3.4 and 3.6).

`versions.py` holds the differences between versions. Blocks, headers, bodies and transactions stay encoded here: Rust
decodes them, outside the event loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from msgspec import Struct

from ophion.peers.eth.field_decoding import (
    block_hash,
    enclosed,
    encode_hashes,
    items_of,
    list_of_hashes,
    number,
    parts_of,
    with_id,
)
from ophion.peers.eth.fork_id import ForkId
from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError
from ophion.primitives.types import HASH_LENGTH, Hash32

KIB: Final = 1024
MAX_MESSAGE: Final = 10 * KIB * KIB
"""Size limit of every message, in bytes."""
MAX_DIFFICULTY_BITS: Final = 100
"""Maximum number of bits of a total difficulty. No real chain reaches this limit."""
MAX_EXTRA_DATA: Final = 100 * KIB
"""Maximum size of a header's extra data in bytes. Extra data with hundreds of validators stays well below this limit.
"""
MAX_HEADER_BYTES: Final = MAX_EXTRA_DATA + 4 * KIB


class Code(IntEnum):
    """Message codes, relative to the first code of the protocol."""

    STATUS = 0x00
    NEW_BLOCK_HASHES = 0x01
    TRANSACTIONS = 0x02
    GET_BLOCK_HEADERS = 0x03
    BLOCK_HEADERS = 0x04
    GET_BLOCK_BODIES = 0x05
    BLOCK_BODIES = 0x06
    NEW_BLOCK = 0x07
    NEW_POOLED_TRANSACTION_HASHES = 0x08
    GET_POOLED_TRANSACTIONS = 0x09
    POOLED_TRANSACTIONS = 0x0A
    GET_NODE_DATA = 0x0D
    NODE_DATA = 0x0E
    GET_RECEIPTS = 0x0F
    RECEIPTS = 0x10
    BLOCK_RANGE_UPDATE = 0x11

    @property
    def label(self) -> str:
        """Name of the message in the specification, logs and metrics."""
        return "".join(word.capitalize() for word in self.name.split("_"))


MAX_BYTES: Final = {
    Code.STATUS: KIB,
    Code.NEW_BLOCK_HASHES: 64 * KIB,
    Code.TRANSACTIONS: 4 * KIB * KIB,
    Code.GET_BLOCK_HEADERS: KIB,
    Code.BLOCK_HEADERS: 4 * KIB * KIB,
    Code.GET_BLOCK_BODIES: 64 * KIB,
    Code.BLOCK_BODIES: MAX_MESSAGE,
    Code.NEW_BLOCK: MAX_MESSAGE,
    Code.NEW_POOLED_TRANSACTION_HASHES: 192 * KIB,
    Code.GET_POOLED_TRANSACTIONS: 192 * KIB,
    Code.POOLED_TRANSACTIONS: 4 * KIB * KIB,
    Code.GET_NODE_DATA: 64 * KIB,
    Code.NODE_DATA: KIB,
    Code.GET_RECEIPTS: 64 * KIB,
    Code.RECEIPTS: MAX_MESSAGE,
    Code.BLOCK_RANGE_UPDATE: KIB,
}
"""Size limits in bytes, by message code. The limit of `NODE_DATA` is low, because this node never requests it."""
MAX_ANNOUNCED_BLOCKS: Final = 1536
"""Limit of hashes in one NewBlockHashes."""
_MAX_ANNOUNCED_TRANSACTIONS: Final = 6144
"""Limit of hashes in one NewPooledTransactionHashes. Other clients send up to 4096."""
_MAX_FIELDS: Final = 32
"""Limit of RLP items in a message without lists. Leaves space for fields that later versions may append."""
_GAS_PER_BYTE: Final = 4
"""Gas of a zero byte of call data, the cheapest byte of a block."""
_BLOCK_SLACK_BYTES: Final = 512 * KIB
"""Bytes added to the size limit of a block for validators in the header and for transaction encoding."""


def max_block_bytes(gas_limit: int) -> int:
    """Return the size limit of a NewBlock in bytes, rounded up to whole MiB, given the gas limit of the head.

    Adds a quarter, because the gas limit of the next blocks may be higher.
    """
    size = gas_limit // _GAS_PER_BYTE * 5 // 4 + _BLOCK_SLACK_BYTES
    return min(MAX_MESSAGE, -(-size // (KIB * KIB)) * KIB * KIB)


ANSWERS: Final = {
    Code.GET_BLOCK_HEADERS: Code.BLOCK_HEADERS,
    Code.GET_BLOCK_BODIES: Code.BLOCK_BODIES,
    Code.GET_POOLED_TRANSACTIONS: Code.POOLED_TRANSACTIONS,
    Code.GET_RECEIPTS: Code.RECEIPTS,
    Code.GET_NODE_DATA: Code.NODE_DATA,
}
"""The response code of each request code."""


class Status(Struct, frozen=True):
    """The Status message: the network, the fork and the head of a node."""

    version: int
    network_id: int
    genesis: Hash32
    fork_id: ForkId
    best_hash: Hash32
    total_difficulty: int | None = None
    """Total difficulty including the best block. Not sent from eth/69 on."""
    latest: int | None = None
    """Number of the best block. Not sent before eth/69."""
    earliest: int = 0
    """Number of the first block whose body the node has."""


class BlockRange(Struct, frozen=True):
    """The BlockRangeUpdate message: which blocks a node has."""

    earliest: int
    latest: int
    latest_hash: Hash32

    def encode(self) -> bytes:
        return rlp.encode([self.earliest, self.latest, self.latest_hash])

    @classmethod
    def decode(cls, payload: bytes) -> BlockRange:
        items = items_of(payload, 3, _MAX_FIELDS, "block range")
        return cls(
            number(items[0], 64, "earliest block"),
            number(items[1], 64, "latest block"),
            block_hash(items[2], "latest hash"),
        )


class GetHeaders(Struct, frozen=True):
    """A request for headers. `skip` is the number of headers to leave out between two returned headers."""

    start: int | Hash32
    limit: int
    skip: int = 0
    reverse: bool = False

    def encode(self, request_id: int) -> bytes:
        return enclosed(request_id, rlp.encode([self.start, self.limit, self.skip, int(self.reverse)]))

    @classmethod
    def decode(cls, body: bytes) -> GetHeaders:
        items = items_of(body, 4, _MAX_FIELDS, "request for headers")
        start, reverse = items[0], number(items[3], 1, "direction")
        return cls(
            start
            if isinstance(start, bytes) and len(start) == HASH_LENGTH
            else number(start, 64, "start of the headers"),
            number(items[1], 64, "number of headers"),
            number(items[2], 64, "distance of headers"),
            bool(reverse),
        )


class TransactionHashes(Struct, frozen=True):
    """An announcement of transactions: type, size and hash of each."""

    types: bytes
    sizes: Sequence[int]
    """Announced sizes in bytes. In eth/66, which announces no sizes, all are 0."""
    hashes: list[Hash32]

    def encode(self) -> bytes:
        sizes = rlp.list_of([rlp.encode_int(size) for size in self.sizes])
        return rlp.list_of((rlp.encode_bytes(self.types), sizes, encode_hashes(self.hashes)))

    @classmethod
    def decode(cls, payload: bytes) -> TransactionHashes:
        what = "transaction hashes"
        encoded_types, encoded_sizes, encoded_hashes = parts_of(payload, 3, what)
        types, sizes = rlp.decode(encoded_types, 0), rlp.decode_list(encoded_sizes, _MAX_ANNOUNCED_TRANSACTIONS)
        hashes = list_of_hashes(encoded_hashes, what)
        if not isinstance(types, bytes) or not len(types) == len(sizes) == len(hashes):
            raise RlpError(f"{what}: types, sizes and hashes differ in number", 0)
        return cls(types, [number(size, 32, "size of a transaction") for size in sizes], hashes)


def encode_bare_hashes(message: TransactionHashes) -> bytes:
    """Encode an announcement of eth/66, which has only hashes."""
    return encode_hashes(message.hashes)


def decode_bare_hashes(payload: bytes) -> TransactionHashes:
    """Decode an announcement of eth/66. Types and sizes are zero."""
    hashes = list_of_hashes(payload, "transaction hashes")
    return TransactionHashes(bytes(len(hashes)), [0] * len(hashes), hashes)


def encode_get_by_hash(request_id: int, hashes: list[Hash32]) -> bytes:
    """Encode a request for bodies, receipts or pooled transactions."""
    return enclosed(request_id, encode_hashes(hashes))


def decode_get(payload: bytes, code: Code) -> tuple[int, bytes]:
    """Split a request into (request id, encoded body)."""
    return with_id(payload, code.label)


def encode_new_hashes(blocks: Sequence[tuple[Hash32, int]]) -> bytes:
    """Encode NewBlockHashes from hashes and numbers."""
    return rlp.encode(blocks)


def decode_new_hashes(payload: bytes) -> list[tuple[Hash32, int]]:
    """Decode NewBlockHashes into (hash, number) of each announced block."""
    found = []
    for item in items_of(payload, 0, 3 * MAX_ANNOUNCED_BLOCKS, "block hashes"):
        if not isinstance(item, list) or len(item) != 2:
            raise RlpError("block hashes: a hash and a number are expected", 0)
        found.append((block_hash(item[0], "announced block"), number(item[1], 64, "number of an announced block")))
    return found


def encode_new_block(block: bytes, total_difficulty: int) -> bytes:
    """Encode a NewBlock message from an encoded block and the total difficulty."""
    return rlp.list_of((block, rlp.encode_int(total_difficulty)))


class EncodedBlock(NamedTuple):
    """A block inside a NewBlock message. The message is not copied, because it may be megabytes long."""

    message: bytes
    start: int
    end: int

    @property
    def size(self) -> int:
        """Size of the encoded block in bytes."""
        return self.end - self.start

    @property
    def header_bytes(self) -> int:
        """Size of the encoded header in bytes."""
        _, start, _ = rlp.head(self.message, self.start)
        return rlp.item_end(self.message, start) - start


def decode_new_block(payload: bytes) -> tuple[EncodedBlock, int]:
    """Decode NewBlock into the encoded block and the total difficulty including this block."""
    what = "new block"
    is_list, start, end = rlp.head(payload, 0)
    if not is_list or end != len(payload):
        raise RlpError(f"{what}: not a list", 0)
    middle = rlp.item_end(payload, start)
    if middle >= end or rlp.item_end(payload, middle) != end:
        raise RlpError(f"{what}: a block and a total difficulty are expected", start)
    if end - middle > rlp.MAX_HEAD + MAX_DIFFICULTY_BITS // 8 + 1:
        raise RlpError(f"{what}: not a number of {MAX_DIFFICULTY_BITS} bits", middle)
    difficulty = number(rlp.decode(payload[middle:], 0), MAX_DIFFICULTY_BITS, "total difficulty")
    return EncodedBlock(payload, start, middle), difficulty
