"""The interface between consensus rules and the chain.

The chain calls an `Engine` to hash, verify, reward and compare blocks. The engine reads chain data through a
`HeaderReader`. An engine never uses the database, and the importer never reads a seal.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from msgspec import Struct

from ophion.chainspec.consensus_parameters import HeaderForm
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address, Hash32, Signature


class Finality(Enum):
    """The rule that decides when a block can no longer be replaced."""

    IMMEDIATE = "immediate"
    """Under BFT, a committed block is never replaced."""
    HEAVIEST = "heaviest"
    """Under proof of work and Clique, the branch with the highest total difficulty wins at any time."""


class Vote(Struct, frozen=True):
    """A vote to add an address to the validators or signers, or to remove the address."""

    target: Address
    authorize: bool


class BlockPreferences(Struct, frozen=True):
    """The values that a block producer may choose. The rules determine all other header fields."""

    timestamp: int
    """Minimum timestamp. The engine uses a later timestamp if its rules require one."""
    author: Address
    """Address of the block producer."""
    extra_data: bytes = b""
    """Vanity data, which engines extend with their own data."""
    vote: Vote | None = None
    target_gas_limit: int | None = None
    """Target of the gas limit. Each block moves the limit towards the target as far as the rules allow. If None, the
    limit stays the same.
    """
    fixed_base_fee: int = 0
    """The node's minimum gas price. Networks with a fixed base fee use it as the base fee."""
    mix_hash: Hash32 = bytes(32)
    """The randomness of a block after the merge (PREVRANDAO)."""
    parent_beacon_block_root: Hash32 = bytes(32)
    header_form: HeaderForm | None = None
    """Form of the first BFT header after Shanghai. Each later header has the form of its parent."""


class Tip(Struct, frozen=True):
    """The last block of a branch and its total difficulty, for fork choice."""

    header: HashedHeader
    total_difficulty: int


class HeaderReader(Protocol):
    """The chain data that an engine may read, including blocks that are not committed yet."""

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        """Return a header of any branch, or None."""

    def canonical(self, number: int) -> HashedHeader | None:
        """Return the header with this number on the canonical chain, or None."""

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        """Return the sum of the difficulties up to and including this block, or None."""

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        """Return the ommers of a block, or an empty sequence if the block is unknown."""

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """Return the stored result of `Engine.checkpoint` for a committed block, or None."""


class Engine(Protocol):
    """The consensus rules of one network, without clock, I/O and keys."""

    @property
    def name(self) -> str:
        """Short name for logs and metrics."""

    @property
    def finality(self) -> Finality:
        """The rule that decides when a block of this network can no longer be replaced."""

    def hashed(self, header: Header, encoded: bytes | None = None) -> HashedHeader:
        """Return the header with its block hash. The node calls this once when a header arrives.

        `encoded` is the received RLP of the header, for a fast path.
        """

    def author(self, header: HashedHeader) -> Address:
        """Return the producer of the block: the coinbase, or the address recovered from the seal."""

    def beneficiary(self, header: HashedHeader) -> Address:
        """Return the address that earns the fees. The COINBASE instruction returns the same address."""

    def check_genesis(self, header: Header) -> None:
        """Raise `GenesisError` if the genesis header is invalid."""

    def verify(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
        """Raise `InvalidHeader` if the header breaks a rule. The error is `transient` if only the timestamp is too
        early.
        """

    def look_ahead(self, headers: Sequence[HashedHeader]) -> None:
        """Recover the signatures that `verify` needs for these headers, on all cores.

        The call is optional: it only makes `verify` faster. Any thread may call it.
        """

    def unsealed(self, headers: Sequence[HashedHeader]) -> list[HashedHeader]:
        """Return the headers whose seals are wrong although their hashes are right.

        The hash of an IBFT 2.0 or QBFT header does not cover its seals. So a peer can send a header with wrong seals,
        although a later header proves its hash.
        """

    def verify_ommers(self, header: HashedHeader, ommers: Sequence[Header], chain: HeaderReader) -> None:
        """Raise `InvalidBlock` if the ommers of a verified header break a rule."""

    def rewards(self, header: HashedHeader, ommers: Sequence[Header]) -> list[tuple[Address, int]]:
        """Return (address, wei) pairs to credit after the transactions. Amounts of zero are omitted."""

    def prefers(self, tip: Tip, head: Tip, chain: HeaderReader) -> bool:
        """Whether `tip` should become the head. `tip` is a verified block off the canonical chain."""

    def prepare(self, parent: HashedHeader, preferences: BlockPreferences, chain: HeaderReader) -> Header:
        """Return the header of a block to build. Roots and gas used stay empty until execution."""

    def signing_hash(self, header: Header) -> Hash32:
        """Return the hash that the author signs. Under proof of work, the miner searches a nonce for this hash."""

    def attach(self, header: Header, seals: Sequence[Signature]) -> Header:
        """Return the header with these seals, which are signatures of its signing hash."""

    def members(self, after: HashedHeader, chain: HeaderReader) -> tuple[Address, ...]:
        """Return the addresses that may produce the next block, in ascending order. The tuple is empty if every node
        may produce the block.
        """

    def checkpoint(self, header: HashedHeader, chain: HeaderReader) -> bytes | None:
        """Return the state to store with a verified block, so that later blocks need not read many earlier headers.

        The chain calls this every few hundred blocks. Returns None if the engine has nothing to store.
        """
