"""The differences between eth versions, one table entry per version (networking.md 3.2).

eth/69 sends the block range instead of the total difficulty. Clique needs the total difficulty for fork choice, so only
IBFT 2.0 and QBFT networks offer eth/69. eth/66 is for older clients (GoQuorum, Besu before 22.10.3). In eth/66,
announcements of transactions have only hashes. Its message GetNodeData gets empty responses from this node.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ophion.peers.eth.field_decoding import block_hash, items_of, number
from ophion.peers.eth.fork_id import ForkId
from ophion.peers.eth.messages import (
    MAX_BYTES,
    MAX_DIFFICULTY_BITS,
    Code,
    Status,
    TransactionHashes,
    decode_bare_hashes,
    encode_bare_hashes,
)
from ophion.peers.eth.supported_versions import offered_numbers
from ophion.peers.rlpx.capability import Capability
from ophion.primitives import rlp

NAME: Final = "eth"
_WHAT: Final = "status"
_MAX_ITEMS: Final = 32
"""Limit of RLP items in a Status, at all levels. Includes fields that later versions may append."""


class EthVersion(Struct, frozen=True):
    """One version of the eth protocol."""

    number: int
    length: int
    """Number of message codes that this version reserves on a connection."""
    codes: frozenset[Code]
    """Message codes that this version uses."""
    write_status: Callable[[Status], bytes]
    read_status: Callable[[bytes], Status]
    has_total_difficulty: bool
    """Whether Status and NewBlock carry the total difficulty."""
    write_hashes: Callable[[TransactionHashes], bytes]
    """Encodes announcements of transaction hashes."""
    read_hashes: Callable[[bytes], TransactionHashes]
    receipts_have_bloom: bool
    """Whether receipts have a bloom filter. In receipts without a bloom filter, the type is the first list item."""

    @property
    def capability(self) -> Capability:
        """The capability that this node lists in Hello for this version."""
        known = {int(code): code.label for code in self.codes}
        names = tuple(known.get(code, f"{code:#04x}") for code in range(self.length))
        limits = {int(code): MAX_BYTES[code] for code in self.codes}
        return Capability(NAME, self.number, self.length, names, limits)


def _write_status(status: Status) -> bytes:
    assert status.total_difficulty is not None
    return rlp.encode(
        [
            status.version,
            status.network_id,
            status.total_difficulty,
            status.best_hash,
            status.genesis,
            status.fork_id.items(),
        ]
    )


def _read_status(payload: bytes) -> Status:
    items = items_of(payload, 6, _MAX_ITEMS, _WHAT)
    return Status(
        version=number(items[0], 32, "protocol version"),
        network_id=number(items[1], 256, "network id"),
        total_difficulty=number(items[2], MAX_DIFFICULTY_BITS, "total difficulty"),
        best_hash=block_hash(items[3], "best hash"),
        genesis=block_hash(items[4], "genesis hash"),
        fork_id=ForkId.read(items[5]),
    )


def _write_status_69(status: Status) -> bytes:
    assert status.latest is not None
    return rlp.encode(
        [
            status.version,
            status.network_id,
            status.genesis,
            status.fork_id.items(),
            status.earliest,
            status.latest,
            status.best_hash,
        ]
    )


def _read_status_69(payload: bytes) -> Status:
    items = items_of(payload, 7, _MAX_ITEMS, _WHAT)
    return Status(
        version=number(items[0], 32, "protocol version"),
        network_id=number(items[1], 256, "network id"),
        genesis=block_hash(items[2], "genesis hash"),
        fork_id=ForkId.read(items[3]),
        earliest=number(items[4], 64, "earliest block"),
        latest=number(items[5], 64, "latest block"),
        best_hash=block_hash(items[6], "latest hash"),
    )


_NODE_DATA: Final = frozenset({Code.GET_NODE_DATA, Code.NODE_DATA})
_COMMON: Final = frozenset(Code) - _NODE_DATA - {Code.BLOCK_RANGE_UPDATE}

ETH_66: Final = EthVersion(
    number=66,
    length=17,
    codes=_COMMON | _NODE_DATA,
    write_status=_write_status,
    read_status=_read_status,
    has_total_difficulty=True,
    write_hashes=encode_bare_hashes,
    read_hashes=decode_bare_hashes,
    receipts_have_bloom=True,
)
ETH_68: Final = replace(
    ETH_66, number=68, codes=_COMMON, write_hashes=TransactionHashes.encode, read_hashes=TransactionHashes.decode
)
ETH_69: Final = replace(
    ETH_68,
    number=69,
    length=18,
    codes=_COMMON | {Code.BLOCK_RANGE_UPDATE},
    write_status=_write_status_69,
    read_status=_read_status_69,
    has_total_difficulty=False,
    receipts_have_bloom=False,
)
VERSIONS: Final = {version.number: version for version in (ETH_66, ETH_68, ETH_69)}


def offered(is_final: bool) -> tuple[EthVersion, ...]:
    """Return the offered versions, oldest first. `is_final` says whether the consensus has immediate finality."""
    return tuple(VERSIONS[number] for number in offered_numbers(is_final))
