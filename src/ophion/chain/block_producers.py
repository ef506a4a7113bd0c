"""`BlockProducers`: the addresses that may make the next block."""

from __future__ import annotations

from ophion.chain.chain import Chain
from ophion.errors import OphionError
from ophion.primitives.types import Address, Hash32


class BlockProducers:
    """The validators or signers after the head; empty where every node may make blocks or they are unknown."""

    __slots__ = ("_at", "_chain", "_found")

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._at: Hash32 | None = None
        self._found: frozenset[Address] = frozenset()

    def __contains__(self, address: object) -> bool:
        return address in self.of_head()

    def of_head(self) -> frozenset[Address]:
        """All of them; worked out once for each head."""
        head = self._chain.head
        if head.hash != self._at:
            try:
                self._found = frozenset(self._chain.engine.members(head, self._chain))
            except OphionError:
                # a contract that names no validators: the producer reports it
                self._found = frozenset()
            self._at = head.hash
        return self._found
