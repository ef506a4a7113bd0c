"""`MigrationEngine`: a chain that moves from Clique to QBFT at a block (decision 170).

The genesis file names both engines; `qbft.startBlock` is the first QBFT block. The number of a header decides which
engine applies. The signers after the last Clique block are the first validators, unless a QBFT transition at the start
block sets other validators.

Clique blocks are not final, so two nodes may have different blocks at the last Clique height. The first sealed QBFT
block decides which block is canonical: it is preferred over every Clique block and is never replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ophion.consensus.engine import BlockPreferences, Engine, Finality, HeaderReader, Tip
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address, Hash32, Signature

if TYPE_CHECKING:
    from ophion.consensus.bft.engine import BftEngine
    from ophion.consensus.clique import CliqueEngine


class MigrationEngine:
    """Applies the rules of Clique below the start block, and the rules of QBFT from the start block on."""

    finality = Finality.HEAVIEST

    def __init__(self, clique: CliqueEngine, bft: BftEngine) -> None:
        self.clique = clique
        self.bft = bft
        self.first = bft.schedule.first
        """Number of the first QBFT block."""
        self.name = f"{clique.name}+{bft.name}"
        bft.validators.predecessor = clique.members

    def hashed(self, header: Header, encoded: bytes | None = None) -> HashedHeader:
        """Hash the header by the rules of the engine for its number."""
        return self._at(header.number).hashed(header, encoded)

    def author(self, header: HashedHeader) -> Address:
        """Return the Clique signer or the QBFT proposer of a block."""
        return self._at(header.number).author(header)

    def beneficiary(self, header: HashedHeader) -> Address:
        """Return the address that earns the fees."""
        return self._at(header.number).beneficiary(header)

    def check_genesis(self, header: Header) -> None:
        """Check the genesis header by the rules of Clique."""
        self.clique.check_genesis(header)

    def verify(self, header: HashedHeader, parent: HashedHeader, chain: HeaderReader, now: int) -> None:
        """Check the header by the rules of the engine for its number."""
        self._at(header.number).verify(header, parent, chain, now)

    def look_ahead(self, headers: Sequence[HashedHeader]) -> None:
        """Recover the signatures of Clique and QBFT headers."""
        self.clique.look_ahead([header for header in headers if header.number < self.first])
        self.bft.look_ahead([header for header in headers if header.number >= self.first])

    def unsealed(self, headers: Sequence[HashedHeader]) -> list[HashedHeader]:
        """Return the QBFT headers with wrong seals.

        A Clique header with another seal has another hash, so it is never returned.
        """
        return self.bft.unsealed([header for header in headers if header.number >= self.first])

    def verify_ommers(self, header: HashedHeader, ommers: Sequence[Header], chain: HeaderReader) -> None:
        """Check that the block has no ommers."""
        self._at(header.number).verify_ommers(header, ommers, chain)

    def rewards(self, header: HashedHeader, ommers: Sequence[Header]) -> list[tuple[Address, int]]:
        """Return the configured reward of a QBFT block. Clique blocks have no reward."""
        return self._at(header.number).rewards(header, ommers)

    def prefers(self, tip: Tip, head: Tip, chain: HeaderReader) -> bool:
        """Prefer a QBFT block to any Clique block. Two blocks of one engine are compared by the rule of that engine."""
        is_tip_final, is_head_final = self.is_final(tip.header.number), self.is_final(head.header.number)
        if is_tip_final != is_head_final:
            return is_tip_final
        return self._at(tip.header.number).prefers(tip, head, chain)

    def prepare(self, parent: HashedHeader, preferences: BlockPreferences, chain: HeaderReader) -> Header:
        """Return the draft header of the next block, by the rules of the engine for its number."""
        return self._at(parent.number + 1).prepare(parent, preferences, chain)

    def signing_hash(self, header: Header) -> Hash32:
        """Return the hash that the Clique signer or the QBFT validators sign."""
        return self._at(header.number).signing_hash(header)

    def attach(self, header: Header, seals: Sequence[Signature]) -> Header:
        """Return the header with these seals: of the Clique signer or the QBFT validators."""
        return self._at(header.number).attach(header, seals)

    def members(self, after: HashedHeader, chain: HeaderReader) -> tuple[Address, ...]:
        """Return the signers or validators of the next block."""
        return self._at(after.number + 1).members(after, chain)

    def checkpoint(self, header: HashedHeader, chain: HeaderReader) -> bytes | None:
        """Return the snapshot of the signers or the vote tally after a block."""
        return self._at(header.number).checkpoint(header, chain)

    def is_final(self, number: int) -> bool:
        """Whether blocks with this number are final: True for QBFT blocks."""
        return number >= self.first

    def _at(self, number: int) -> CliqueEngine | BftEngine:
        return self.bft if number >= self.first else self.clique


def is_final_at(engine: Engine, number: int) -> bool:
    """Whether a committed block with this number is final."""
    if isinstance(engine, MigrationEngine):
        return engine.is_final(number)
    return engine.finality is Finality.IMMEDIATE
