"""`BodyQueue`: a queue of blocks that wait for their bodies, in order. Sends no requests itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ophion.chain.block import empty_body
from ophion.chain.events import ChainBlock
from ophion.native.transactions import Body
from ophion.peers.eth.response_validation import SizedBody
from ophion.primitives.header import HashedHeader

MAX_BODIES: Final = 128
"""Number of bodies per request. All clients serve at least this many bodies."""
REQUEST_BYTES: Final = 512 * 1024
"""Expected size of a response in bytes. The size is small, so that execution starts while the next bodies download."""
_TRANSACTION_GAS: Final = 21_000
_TRANSACTION_BYTES: Final = 150
_MIN_BYTES: Final = 64


class Slot(Struct, eq=False):
    """A block in the queue that waits for its body."""

    header: HashedHeader
    body: Body | None
    size: int
    """Size of the body in bytes. Estimated from the gas used until the body arrives; 0 for an empty body."""


class BodyQueue:
    """Blocks whose header has arrived and which are not imported yet."""

    def __init__(self) -> None:
        self._slots: deque[Slot] = deque()
        self._missing: deque[Slot] = deque()
        """Blocks whose bodies are not requested yet, in order."""
        self.held_bytes = 0
        """Number of bytes of bodies that have arrived or are requested."""

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, headers: Sequence[HashedHeader]) -> None:
        """Append the headers of the next blocks to the queue."""
        for header in headers:
            body = empty_body(header.header)
            slot = Slot(header, body, 0 if body is not None else _expected_bytes(header))
            self._slots.append(slot)
            if body is None:
                self._missing.append(slot)

    @property
    def first_missing(self) -> HashedHeader | None:
        """The first block whose body is not requested yet, or None."""
        return self._missing[0].header if self._missing else None

    def next_request(self, below: int) -> list[Slot]:
        """Remove and return the blocks of the next body request, with numbers up to `below`."""
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

    def received(self, slots: Sequence[Slot], bodies: Sequence[SizedBody]) -> None:
        """Store the received bodies. Blocks whose body is still missing go to the front of the request queue."""
        for slot, found in zip(slots, bodies, strict=False):
            self.held_bytes += found.size - slot.size
            slot.body, slot.size = found.body, found.size
        missing = slots[len(bodies) :]
        if missing:
            self.held_bytes -= sum(slot.size for slot in missing)
            # sort the blocks, because the import waits for the oldest block
            self._missing = deque(sorted((*missing, *self._missing), key=lambda slot: slot.header.number))

    def take_ready(self, max_blocks: int, max_transactions: int) -> list[ChainBlock]:
        """Remove the blocks that are ready for import, oldest first."""
        ready: list[ChainBlock] = []
        transactions = 0
        while self._slots and len(ready) < max_blocks and transactions < max_transactions:
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
