"""Type aliases for byte strings, block references and well-known constants.

`Address` and `Hash32` are plain aliases of `bytes`, because values come from the Rust extension as `bytes`. New types
would cost a call per value on hot paths. The node checks the length of each value where the value enters.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

Address: TypeAlias = bytes
"""An address: 20 bytes."""

Hash32: TypeAlias = bytes
"""A hash: 32 bytes."""

Signature: TypeAlias = bytes
"""65 bytes: r, s and v, where v is 0 or 1 (consensus.md 0.3)."""


class BlockTag(Enum):
    """A block named by its role instead of its number."""

    EARLIEST = "earliest"
    LATEST = "latest"
    PENDING = "pending"
    SAFE = "safe"
    FINALIZED = "finalized"


BlockRef: TypeAlias = "BlockTag | int | Hash32"
"""A reference to a block: a tag, a number on the canonical chain, or a hash."""

ADDRESS_LENGTH = 20
HASH_LENGTH = 32
BLOOM_LENGTH = 256
NONCE_LENGTH = 8
SIGNATURE_LENGTH = 65

ZERO_ADDRESS: Address = bytes(ADDRESS_LENGTH)
ZERO_HASH: Hash32 = bytes(HASH_LENGTH)
ZERO_NONCE = bytes(NONCE_LENGTH)
EMPTY_BLOOM = bytes(BLOOM_LENGTH)

EMPTY_CODE_HASH: Hash32 = bytes.fromhex("c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")
"""Keccak-256 of the empty string."""

EMPTY_TRIE_ROOT: Hash32 = bytes.fromhex("56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421")
"""Root of an empty trie."""

EMPTY_OMMERS_HASH: Hash32 = bytes.fromhex("1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347")
"""Keccak-256 of the RLP of an empty list."""

EMPTY_REQUESTS_HASH: Hash32 = bytes.fromhex("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
"""SHA-256 of the empty string: the requests hash of a block without requests (EIP-7685)."""

WEI_PER_ETHER = 10**18
WEI_PER_GWEI = 10**9
