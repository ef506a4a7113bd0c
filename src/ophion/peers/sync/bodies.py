"""Blocks in order, each waiting for its body. Asks nobody itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ophion.chain.block import empty_body
from ophion.chain.events import ChainBlock
from ophion.native.transactions import Body
from ophion.peers.eth.response_validation import SizedBody
from ophion.primitives.block import HashedHeader

MAX_BODIES: Final = 128
"""Bodies of one request; all clients serve so many."""
REQUEST_BYTES: Final = 512 * 1024
"""What one request should bring: small enough that the first blocks are executed while the next ones travel."""
_TRANSACTION_GAS: Final = 21_000
_TRANSACTION_BYTES: Final = 150
_MIN_BYTES: Final = 64


class Slot(Struct, eq=False):
    """A block on its way."""

    header: HashedHeader
    body: Body | None
    size: int
    """Bytes of the body: what its gas lets expect, then what came; 0 for an empty one."""


class BodyQueue:
    """Blocks between the arrival of their headers and their import."""

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque()
        self._missing: deque[Slot] = deque()
        """Those to be asked for, in order."""
        self.held_bytes = 0
        """Bytes of bodies that are here or asked for."""

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, headers: Sequence[HashedHeader]) -> None:
        """Headers that follow the last one."""
        for header in headers:
            body = empty_body(header.header)
            slot = Slot(header, body, 0 if body is not None else _expected_bytes(header))
            self._slots.append(slot)
            if body is None:
                self._missing.append(slot)

    @property
    def first_missing(self) -> HashedHeader | None:
        """The first block whose body is to be asked for."""
        return self._missing[0].header if self._missing else None

    def next_request(self, below: int) -> list[Slot]:
        """The next blocks, numbers up to `below`, whose bodies to ask one peer for."""
        slots: list[Slot] = []
        size = 0
        while self._missing and len(slots) < MAX_BODIES and self._missing[0].header.number <= below:
            slot = self._missing[0]
            if slots and size + slot.size > REQUEST_BYTES:
                break
            slots.append(self._missing.popleft())
            size += slot.size
        self.held_bytes += size
        return slots

    def came(self, slots: Sequence[Slot], bodies: Sequence[SizedBody]) -> None:
        """Bodies of the first of these blocks; the others are asked for again, before anything else."""
        for slot, found in zip(slots, bodies, strict=False):
            self.held_bytes += found.size - slot.size
            slot.body, slot.size = found.body, found.size
        missing = slots[len(bodies) :]
        if missing:
            self.held_bytes -= sum(slot.size for slot in missing)
            # the oldest block is what the import waits for
            self._missing = deque(sorted((*missing, *self._missing), key=lambda slot: slot.header.number))

    def take_ready(self, most_blocks: int, most_transactions: int) -> list[ChainBlock]:
        """Blocks that can be imported now, oldest first."""
        ready: list[ChainBlock] = []
        transactions = 0
        while self._slots and len(ready) < most_blocks and transactions < most_transactions:
            slot = self._slots[0]
            if slot.body is None:
                break
            self._slots.popleft()
            self.held_bytes -= slot.size
            ready.append(ChainBlock(slot.header, slot.body))
            transactions += slot.body.transaction_count
        return ready


def _expected_bytes(header: HashedHeader) -> int:
    return header.header.gas_used // _TRANSACTION_GAS * _TRANSACTION_BYTES + _MIN_BYTES
