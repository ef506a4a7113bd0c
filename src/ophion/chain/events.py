"""Events of the chain, published after a commit.

On an event, the pool removes mined transactions and re-adds transactions of blocks that left the canonical chain.
Filters and subscriptions collect hashes and logs. Producers start the next height.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader


class ChainBlock(Struct, frozen=True):
    """A block as listeners and the importer receive it: hashed header and decoded body."""

    header: HashedHeader
    body: Body
    """Decoded body with recovered senders."""


class Extended(Struct, frozen=True):
    """Blocks have extended the canonical chain. `blocks` lists them, oldest first."""

    blocks: tuple[ChainBlock, ...]

    @property
    def head(self) -> HashedHeader:
        """The new head of the chain."""
        return self.blocks[-1].header


class Reorged(Struct, frozen=True):
    """The canonical chain switched to a heavier branch."""

    removed: tuple[ChainBlock, ...]
    """Abandoned blocks, old head first."""
    added: tuple[ChainBlock, ...]
    """New blocks, oldest first."""

    @property
    def head(self) -> HashedHeader:
        """The new head of the chain."""
        return self.added[-1].header


class Rewound(Extended, frozen=True):
    """A development node has set the head back, or has edited the state of the head. The chain has no new block.

    A process that only reads publishes this event too, for each head of the process that writes.

    `blocks` is empty, so listeners that collect blocks do nothing.
    """

    header: HashedHeader

    @property
    def head(self) -> HashedHeader:
        """The head after the rewind."""
        return self.header


ChainEvent: TypeAlias = Extended | Reorged
