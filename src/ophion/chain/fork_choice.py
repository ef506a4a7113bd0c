"""Computes how the canonical chain changes when its head moves to another block."""

from __future__ import annotations

from msgspec import Struct

from ophion.consensus.engine import HeaderReader, Tip
from ophion.errors import UnknownParent
from ophion.primitives.header import HashedHeader


class HeadChange(Struct, frozen=True):
    """Blocks that leave and enter the canonical chain when the head moves."""

    removed: tuple[HashedHeader, ...]
    """Blocks that leave the canonical chain, old head first. The tuple is empty when the chain is only extended."""
    added: tuple[HashedHeader, ...]
    """Blocks that enter the canonical chain, oldest first. The last block is the new head."""
    tip: Tip
    """The new head with its total difficulty."""


def head_change(tip: Tip, head: HashedHeader, chain: HeaderReader) -> HeadChange:
    """Return the path from `head` to `tip` through their last common ancestor."""
    removed: list[HashedHeader] = []
    added: list[HashedHeader] = []
    old, new = head, tip.header
    while new.hash != old.hash:
        if new.number > old.number:
            added.append(new)
            new = _parent(new, chain)
        else:
            removed.append(old)
            old = _parent(old, chain)
    added.reverse()
    return HeadChange(tuple(removed), tuple(added), tip)


def _parent(header: HashedHeader, chain: HeaderReader) -> HashedHeader:
    parent = chain.header(header.parent_hash)
    if parent is None:
        raise UnknownParent(header.number, header.parent_hash, header.number - 1)
    return parent
