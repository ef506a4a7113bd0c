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
from ophion.primitives.block import HashedHeader, Header
from ophion.primitives.types import Address, Hash32, Signature


class Finality(Enum):
    """When a block can no longer be replaced."""

    IMMEDIATE = "immediate"
    """A committed block is never replaced (BFT)."""
    HEAVIEST = "heaviest"
    """The branch with the highest total difficulty wins at any time (proof of work, Clique)."""


class Vote(Struct, frozen=True):
    """A vote to add an address to the validators or signers, or to remove the address."""

    target: Address
    authorize: bool


class BlockPreferences(Struct, frozen=True):
    """The values that a block producer may choose. The rules determine all other header fields."""

    timestamp: int
    """Minimum timestamp. The engine raises it if its rules require a later one."""
    author: Address
    """Address of the producer."""
    extra_data: bytes = b""
    """Vanity data. Engines add their own data to it."""
    vote: Vote | None = None
    target_gas_limit: int | None = None
    """Target to which the gas limit moves as fast as the rules allow. None keeps the parent's gas limit."""
    fixed_base_fee: int = 0
    """The base fee on networks that fix it to the node's minimum gas price."""
    mix_hash: Hash32 = bytes(32)
    """The randomness of the block after the merge."""
    parent_beacon_block_root: Hash32 = bytes(32)
    header_form: HeaderForm | None = None
    """Form of the first BFT header after Shanghai. Later headers have the form of their parent."""


class Tip(Struct, frozen=True):
    """The end of a branch, for fork choice."""

    header: HashedHeader
    total_difficulty: int


class HeaderReader(Protocol):
    """The chain data that an engine may read. Includes blocks that are not committed yet."""

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        """Return a header of any branch, or None."""

    def canonical(self, number: int) -> HashedHeader | None:
        """Return the header with this number on the canonical chain, or None."""

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        """Return the sum of the difficulties up to and including this block, or None."""

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        """Return the ommers of a block. Empty when the block is unknown."""

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """Return the stored result of `Engine.checkpoint` for a committed block, or None."""


class Engine(Protocol):
    """The consensus rules of one network. Pure: no clock, no I/O, no keys."""

    @property
    def name(self) -> str:
        """Short name for logs and metrics."""

    @property
    def finality(self) -> Finality:
        """The rule that decides when a block can no longer be replaced."""

    def hashed(self, header: Header) -> HashedHeader:
        """Return the header with its block hash. Called once when a header enters the node."""

    def author(self, header: HashedHeader) -> Address:
        """Return the producer of the block: the coinbase, or the address recovered from the seal."""

    def beneficiary(self, header: HashedHeader) -> Address:
        """Return the address that earns the fees. It is also the result of the COINBASE instruction."""

    def check_genesis(self, header: Header) -> None:
        """Raise `GenesisError` if the genesis header is invalid."""

    def verify(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
        """Raise `InvalidHeader` if the header breaks a rule. The error is `transient` if the header is only too
        early.
        """

    def look_ahead(self, headers: Sequence[HashedHeader]) -> None:
        """Recover the signatures that `verify` needs for these headers, on all cores. An optional speed-up.

        For callers with many headers. May run in any thread.
        """

    def verify_ommers(self, header: HashedHeader, ommers: Sequence[Header], chain: HeaderReader) -> None:
        """Raise `InvalidBlock` if the ommers of a verified header break a rule."""

    def rewards(self, header: HashedHeader, ommers: Sequence[Header]) -> list[tuple[Address, int]]:
        """Return (address, wei) credited after the transactions, without zero amounts."""

    def prefers(self, tip: Tip, head: Tip, chain: HeaderReader) -> bool:
        """Whether `tip`, a verified block that is not on the canonical chain, should become the head."""

    def prepare(self, parent: HashedHeader, preferences: BlockPreferences, chain: HeaderReader) -> Header:
        """Return the header of a block to build. Roots and gas used stay empty until execution."""

    def signing_hash(self, header: Header) -> Hash32:
        """Return the hash that the author signs, or for which a miner searches a nonce."""

    def attach(self, header: Header, seals: Sequence[Signature]) -> Header:
        """Return the header with these seals. The seals sign the signing hash of the header."""

    def members(self, after: HashedHeader, chain: HeaderReader) -> tuple[Address, ...]:
        """Return the addresses that may produce the next block, in ascending order. Empty if every node may."""

    def checkpoint(self, header: HashedHeader, chain: HeaderReader) -> bytes | None:
        """Return the state to store with a verified block, so that later blocks need not read many earlier headers.

        Called every few hundred blocks. None if there is nothing to store.
        """
