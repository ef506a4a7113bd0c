"""The interface between consensus rules and the chain.

The chain asks an `Engine` to hash, verify, reward and compare; the engine reads chain data through a `HeaderReader`. An
engine never uses the database, and the importer never reads a seal.
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
    """A committed block stays (BFT)."""
    HEAVIEST = "heaviest"
    """The branch with the highest total difficulty wins at any time (proof of work, Clique)."""


class Vote(Struct, frozen=True):
    """A vote of a member to add an address to the members, or to remove it."""

    target: Address
    authorize: bool


class BlockPreferences(Struct, frozen=True):
    """What the producer of a block may choose; the rest of a header is prescribed."""

    timestamp: int
    """Minimum timestamp; the engine raises it if its rules require that."""
    author: Address
    """Address of the producer."""
    extra_data: bytes = b""
    """Vanity; engines add their own data."""
    vote: Vote | None = None
    target_gas_limit: int | None = None
    """Move the gas limit towards this, as fast as the rules allow; None keeps the parent's."""
    fixed_base_fee: int = 0
    """The base fee where the network fixes it to the node's minimum gas price."""
    mix_hash: Hash32 = bytes(32)
    """After the merge: the randomness of the block."""
    parent_beacon_block_root: Hash32 = bytes(32)
    header_form: HeaderForm | None = None
    """BFT: the form of the header where the chain leaves it open."""


class Tip(Struct, frozen=True):
    """The end of a branch, for fork choice."""

    header: HashedHeader
    total_difficulty: int


class HeaderReader(Protocol):
    """What an engine may read about the chain, including blocks that are not committed yet."""

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        """A header on any branch."""

    def canonical(self, number: int) -> HashedHeader | None:
        """The header with this number on the canonical chain."""

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        """Sum of the difficulties up to and including this block."""

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        """The ommers of a block; empty when the block is unknown."""

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """Return the stored result of `Engine.checkpoint` for a committed block; None if there is none."""


class Engine(Protocol):
    """The consensus rules of one network. Pure: no clock, no I/O, no keys."""

    @property
    def name(self) -> str:
        """Short name for logs and metrics."""

    @property
    def finality(self) -> Finality:
        """When a block can no longer be replaced."""

    def hashed(self, header: Header) -> HashedHeader:
        """Return the header with its block hash. Called once when a header enters the node."""

    def author(self, header: HashedHeader) -> Address:
        """Return who made the block: the coinbase, or the address recovered from the seal."""

    def beneficiary(self, header: HashedHeader) -> Address:
        """Return who earns the fees; also the result of the COINBASE instruction."""

    def check_genesis(self, header: Header) -> None:
        """Raise `GenesisError` if the genesis header is invalid."""

    def verify(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
        """Raise `InvalidHeader` if the header breaks a rule; it is `transient` if the header is only too early."""

    def look_ahead(self, headers: Sequence[HashedHeader]) -> None:
        """Recover on all cores the sealers that `verify` will need for these headers. Only saves time.

        For callers with many headers; may run in any thread.
        """

    def verify_ommers(self, header: HashedHeader, ommers: Sequence[Header], chain: HeaderReader) -> None:
        """Raise `InvalidBlock` if the ommers of a verified header break a rule."""

    def rewards(self, header: HashedHeader, ommers: Sequence[Header]) -> list[tuple[Address, int]]:
        """Return (address, wei) credited after the transactions, without zero amounts."""

    def prefers(self, tip: Tip, head: Tip, chain: HeaderReader) -> bool:
        """Whether `tip`, a verified block off the canonical chain, should become the head."""

    def prepare(self, parent: HashedHeader, wishes: BlockPreferences, chain: HeaderReader) -> Header:
        """Return the header of a block to build: all fields known before execution, roots and gas used empty."""

    def signing_hash(self, header: Header) -> Hash32:
        """Return the hash that the author signs (or searches a nonce for)."""

    def attach(self, header: Header, seals: Sequence[Signature]) -> Header:
        """Return the header with seals over its signing hash."""

    def members(self, after: HashedHeader, chain: HeaderReader) -> tuple[Address, ...]:
        """Return the addresses that may make the next block, in ascending order; empty if every node may."""

    def checkpoint(self, header: HashedHeader, chain: HeaderReader) -> bytes | None:
        """Return the state to store with a verified block, so that later blocks need no long walk back.

        Called every few hundred blocks; None if there is nothing to store.
        """
