"""What certificates of both dialects must satisfy."""

from __future__ import annotations

from collections.abc import Sequence

from ophion.consensus.bft.messages import Unjustified
from ophion.primitives.types import Address


def check_authors(authors: Sequence[Address], needed: int, what: str) -> None:
    """Enough messages, each by another author: one validator saying a thing twice proves nothing."""
    if len(authors) < needed:
        raise Unjustified(f"{len(authors)} {what} where {needed} are needed")
    if len(set(authors)) != len(authors):
        raise Unjustified(f"two {what} of one author")
