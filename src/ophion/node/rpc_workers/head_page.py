"""The head of the chain in memory that the node and its workers share.

The node writes the page when its own head changes, before it answers any client from the new head. Before each message,
a worker reads the counter of changes in the page, and moves to the new head if the counter has changed. So no process
shows an older head than a client has already seen from another process.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from struct import Struct as Layout
from typing import Final
from zlib import crc32

from msgspec import Struct

from ophion.primitives.types import Hash32

_COUNTER_BYTES: Final = 8
_RECORD: Final = Layout("<QQ32s")
"""Counter of changes, number and hash of the head."""
_CHECKSUM: Final = Layout("<I")
_END: Final = _COUNTER_BYTES + _RECORD.size + _CHECKSUM.size
_PAGE_BYTES: Final = mmap.PAGESIZE
_MAX_READS: Final = 1_000_000
"""Maximum attempts to read a complete record. A write takes a microsecond, so after this many attempts the writer has
ended.
"""


class SharedHead(Struct, frozen=True):
    """The current head of the node, in shared memory, for its workers."""

    change: int
    """Value of the counter with this head."""
    number: int
    hash: Hash32


class HeadPage:
    """A page of memory with the head. One process writes, all other processes read."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._memory = mmap.mmap(descriptor, _PAGE_BYTES)
        self.counter = memoryview(self._memory).cast("Q")
        """The memory as numbers of eight bytes; the first is the counter of changes, which readers check before each
        request.
        """

    @classmethod
    def create(cls) -> HeadPage:
        """Create an empty page, in a file without a name."""
        with tempfile.TemporaryFile(prefix="ophion-head-") as file:
            descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, _PAGE_BYTES)
        return cls(descriptor)

    def write(self, number: int, hash: Hash32) -> None:
        """Publish a head. The counter is written last, so that a reader that sees the new counter also finds the new
        record.
        """
        change = self.counter[0] + 1
        record = _RECORD.pack(change, number, hash)
        self._memory[_COUNTER_BYTES:_END] = record + _CHECKSUM.pack(crc32(record))
        self.counter[0] = change

    def read(self) -> SharedHead:
        """Return the published head. Reads again while the node writes."""
        for _ in range(_MAX_READS):
            text = self._memory[_COUNTER_BYTES:_END]
            record = text[: _RECORD.size]
            if _CHECKSUM.unpack(text[_RECORD.size :])[0] == crc32(record):
                found = SharedHead(*_RECORD.unpack(record))
                if found.change == self.counter[0]:
                    return found
            os.sched_yield()
        raise TimeoutError("the node has not finished writing its head")

    def close(self) -> None:
        """Release the memory and the descriptor."""
        self.counter.release()
        self._memory.close()
        os.close(self.descriptor)
