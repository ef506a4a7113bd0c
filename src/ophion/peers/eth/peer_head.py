"""The best block that a peer is known to have (networking.md 4.1)."""

from __future__ import annotations

from msgspec import Struct

from ophion.primitives.types import Hash32


class PeerHead(Struct, frozen=True):
    """The best block that a peer is known to have."""

    hash: Hash32
    total_difficulty: int | None
    """Total difficulty including this block. None if the eth version does not send the total difficulty."""
    height: int | None
    """Block number. None until this node has seen the header."""
