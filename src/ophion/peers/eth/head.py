"""What is known of a peer's chain: the best block it surely has, and how high it may be (networking.md 4.1)."""

from __future__ import annotations

from msgspec import Struct

from ophion.primitives.types import Hash32


class PeerHead(Struct, frozen=True):
    """A block that a peer has."""

    hash: Hash32
    total_difficulty: int | None
    """Up to and including it; None where the protocol does not tell."""
    height: int | None
    """None until its header has been seen."""
