"""What the chain says after a commit, and never before one.

One stream serves everybody: the pool drops what was mined and takes back what was reorganised out, filters and
subscriptions collect hashes and logs, producers learn of the next height.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from ophion.native.transactions import Body
from ophion.primitives.block import HashedHeader


class ChainBlock(Struct, frozen=True):
    """A committed block as listeners need it."""

    header: HashedHeader
    body: Body
    """Decoded, with its senders."""


class Extended(Struct, frozen=True):
    """The canonical chain grew by these blocks, oldest first."""

    blocks: tuple[ChainBlock, ...]

    @property
    def head(self) -> HashedHeader:
        """The new head."""
        return self.blocks[-1].header


class Reorged(Struct, frozen=True):
    """The canonical chain left one branch for a heavier one."""

    removed: tuple[ChainBlock, ...]
    """Blocks taken off, old head first."""
    added: tuple[ChainBlock, ...]
    """Blocks put on, oldest first."""

    @property
    def head(self) -> HashedHeader:
        """The new head."""
        return self.added[-1].header


class Rewound(Extended, frozen=True):
    """A development node has set the head back, or has edited the state of the head. No block has joined the chain.

    `blocks` is empty, so listeners that collect blocks have nothing to do.
    """

    header: HashedHeader

    @property
    def head(self) -> HashedHeader:
        """The head from now on."""
        return self.header


ChainEvent: TypeAlias = Extended | Reorged
