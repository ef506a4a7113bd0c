"""Memory of blocks that broke a rule.

A bad block is not executed twice, its descendants are refused by their parent's hash alone, and an operator can ask
what was wrong with the last ones. The memory is bounded: a peer that makes up bad blocks only pushes out older ones.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from msgspec import Struct

from ophion.errors import InvalidBlock
from ophion.native.transactions import Body
from ophion.primitives.block import HashedHeader
from ophion.primitives.types import Hash32

_KEPT: Final = 128


class BadBlock(Struct, frozen=True):
    """A block and the rule it broke.

    The error is made anew each time: one that has been raised holds on to everything its traceback has seen, the
    execution of the block included.
    """

    header: HashedHeader
    body: Body
    kind: type[InvalidBlock]
    rule: str
    got: object
    expected: object

    @property
    def error(self) -> InvalidBlock:
        """What to raise when the block comes again."""
        return self.kind(self.rule, self.got, self.expected, self.header.number, self.header.hash)


class BadBlocks:
    """The last bad blocks by hash."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hash32, BadBlock] = OrderedDict()

    def add(self, header: HashedHeader, body: Body, error: InvalidBlock) -> None:
        """Remember a block."""
        self._known[header.hash] = BadBlock(header, body, type(error), error.rule, error.got, error.expected)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)

    def get(self, block_hash: Hash32) -> BadBlock | None:
        """What is known against a block."""
        return self._known.get(block_hash)

    def recent(self) -> list[BadBlock]:
        """All that are remembered, newest first."""
        return list(reversed(self._known.values()))
