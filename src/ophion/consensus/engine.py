"""The door between consensus rules and the chain.

The chain asks an `Engine` to hash, verify, reward and compare; the engine reads what it needs through a `HeaderReader`.
Neither knows the other's inside: an engine never sees a database, and the importer never sees a seal.
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
    """The heaviest branch wins, however late it shows up (proof of work, Clique)."""


class Vote(Struct, frozen=True):
    """A vote of a member to add an address to the members, or to remove it."""

    target: Address
    authorize: bool


class BlockPreferences(Struct, frozen=True):
    """What the producer of a block may choose; the rest of a header is prescribed."""

    timestamp: int
    """The least timestamp; the engine moves it forward when its rules ask for that."""
    author: Address
    """Who makes the block."""
    extra_data: bytes = b""
    """Vanity; engines keep their own data beside it."""
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
    """Everything an engine may know about the chain, blocks that are not committed yet included."""

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        """A header on any branch."""

    def canonical(self, number: int) -> HashedHeader | None:
        """The header with this number on the canonical chain."""

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        """Sum of the difficulties up to and including this block."""

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        """The ommers of a block; empty when the block is unknown."""

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        """What `Engine.checkpoint` said about a committed block; None when nothing was kept."""


class Engine(Protocol):
    """The consensus rules of one network. Pure: no clock, no input or output, no keys."""

    @property
    def name(self) -> str:
        """Short name for logs and metrics."""

    @property
    def finality(self) -> Finality:
        """When a block can no longer be replaced."""

    def hashed(self, header: Header) -> HashedHeader:
        """The header with its block hash. Called once where a header enters the node."""

    def author(self, header: HashedHeader) -> Address:
        """Who made the block: the coinbase, or the address recovered from the seal."""

    def beneficiary(self, header: HashedHeader) -> Address:
        """Who earns the fees; also what the COINBASE instruction answers."""

    def check_genesis(self, header: Header) -> None:
        """Raise `GenesisError` when no chain can grow from this first header."""

    def verify(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
        """Raise `InvalidHeader` when the header breaks a rule; `transient` when only its time has not come."""

    def look_ahead(self, headers: Sequence[HashedHeader]) -> None:
        """Work out on all cores what `verify` will ask about these headers: who sealed them. Only saves time.

        For callers with many headers; may run in any thread.
        """

    def verify_ommers(self, header: HashedHeader, ommers: Sequence[Header], chain: HeaderReader) -> None:
        """Raise `InvalidBlock` when the ommers of a verified header break a rule."""

    def rewards(self, header: HashedHeader, ommers: Sequence[Header]) -> list[tuple[Address, int]]:
        """(address, wei) credited after the transactions; amounts of zero are left out."""

    def prefers(self, tip: Tip, head: Tip, chain: HeaderReader) -> bool:
        """Whether `tip`, a verified block that is not on the canonical chain, should become its head."""

    def prepare(self, parent: HashedHeader, wishes: BlockPreferences, chain: HeaderReader) -> Header:
        """The header of a block to be built: all that is known before execution, roots and gas used empty."""

    def signing_hash(self, header: Header) -> Hash32:
        """What the author signs (or searches a nonce for) once the header is complete."""

    def attach(self, header: Header, seals: Sequence[Signature]) -> Header:
        """The header with seals made over its signing hash."""

    def members(self, after: HashedHeader, chain: HeaderReader) -> tuple[Address, ...]:
        """Addresses that may make the next block, in ascending order; empty where every node may."""

    def checkpoint(self, header: HashedHeader, chain: HeaderReader) -> bytes | None:
        """What to keep on disk about a verified block, so that later ones need not be judged from far back.

        Asked every so many blocks; None when there is nothing to keep.
        """
