"""Remembers blocks that broke a rule.

A bad block is executed only once, its descendants are refused by their parent hash, and operators can list the last bad
blocks. The list is bounded: a new entry evicts the oldest one.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from ophion.errors import InvalidBlock
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Hash32

_MAX_BAD_BLOCKS: Final = 128


class BadBlock(Struct, frozen=True):
    """A block and the rule it broke.

    The entry stores the arguments of the error and not the error, whose traceback would keep the execution in memory.
    """

    header: HashedHeader
    body: Body
    kind: type[InvalidBlock]
    rule: str
    got: object
    expected: object

    @property
    def error(self) -> InvalidBlock:
        """Create the error that is raised when this bad block arrives again."""
        return self.kind(self.rule, self.got, self.expected, self.header.number, self.header.hash)


class BadBlocks:
    """The last bad blocks by hash."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hash32, BadBlock] = OrderedDict()

    def add(self, header: HashedHeader, body: Body, error: InvalidBlock) -> None:
        """Remember an invalid block and the rule that it breaks."""
        self._known[header.hash] = BadBlock(header, body, type(error), error.rule, error.got, error.expected)
        if len(self._known) > _MAX_BAD_BLOCKS:
            self._known.popitem(last=False)

    def get(self, block_hash: Hash32) -> BadBlock | None:
        """Return the entry of a bad block, or None."""
        return self._known.get(block_hash)

    def recent(self) -> list[BadBlock]:
        """Return all bad blocks, newest first."""
        return list(reversed(self._known.values()))
