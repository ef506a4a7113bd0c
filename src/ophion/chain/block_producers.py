"""`BlockProducers`: the addresses that may produce the next block."""

from __future__ import annotations

from ophion.chain.chain import Chain
from ophion.errors import OphionError
from ophion.primitives.types import Address, Hash32


class BlockProducers:
    """The validators or signers of the block after the head. The set is empty if the producers are unknown or every
    node may produce blocks.
    """

    __slots__ = ("_at", "_chain", "_found")

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._at: Hash32 | None = None
        self._found: frozenset[Address] = frozenset()

    def __contains__(self, address: object) -> bool:
        return address in self.of_head()

    def of_head(self) -> frozenset[Address]:
        """Return the addresses that may produce the block after the head. Computed once per head."""
        head = self._chain.head
        if head.hash != self._at:
            try:
                self._found = frozenset(self._chain.engine.members(head, self._chain))
            except OphionError:
                # if the validator contract cannot be read, no address counts as producer; the sealer logs the error
                self._found = frozenset()
            self._at = head.hash
        return self._found
