"""`TrustedHashes`: the hashes of all blocks up to a block whose hash the operator trusts.

Each header names its parent by hash. So the headers from the trusted block down prove the hash of every block, before
any block is written.
"""

from __future__ import annotations

from typing import Final

from ophion.errors import SnapSyncError
from ophion.peers.eth.messages import GetHeaders
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.requests import RequestFailed
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import HASH_LENGTH, Hash32

MAX_HEADERS: Final = 512
_WHAT: Final = "pivot"


class TrustedHashes:
    """Hashes of the blocks from the last known block to the trusted block. Uses 32 bytes of memory per block."""

    def __init__(self, trusted: Hash32) -> None:
        self._next = trusted
        """Hash of the next header to request."""
        self._number: int | None = None
        """Number of the trusted block; None until a peer has sent the header of this block."""
        self._hashes = bytearray()
        """The concatenated block hashes, in descending order of numbers, from the trusted block on."""

    @property
    def number(self) -> int | None:
        """Number of the trusted block; None until a peer has sent the header with the trusted hash."""
        return self._number

    def hash_of(self, number: int) -> Hash32 | None:
        """Return the hash of the block with this number; None if the hash of this block is not fetched."""
        at = HASH_LENGTH * ((self._number or 0) - number)
        return (bytes(self._hashes[at : at + HASH_LENGTH]) or None) if at >= 0 else None

    async def fetch(self, peer: EthPeer, head: HashedHeader) -> int:
        """Request the headers from the trusted block down to the block after `head`. Returns the number of the trusted
        block.

        Raises `RequestFailed` if the peer lacks these headers, and `SnapSyncError` if the trusted block is not a
        descendant of `head`. After `RequestFailed`, a later call continues, also with another peer.
        """
        while self._number is None or self._number - len(self._hashes) // HASH_LENGTH > head.number:
            found = await peer.headers(GetHeaders(self._next, MAX_HEADERS, reverse=True))
            if not found:
                raise RequestFailed(_WHAT, f"the peer does not have block 0x{self._next.hex()}")
            if self._number is None:
                self._number = found[0].number
            for header in found[: max(1, found[0].number - head.number)]:
                self._hashes += header.hash
                self._next = header.parent_hash
        if (self.hash_of(head.number) or self._next) != head.hash:
            raise SnapSyncError(
                f"Block {self._number} with the trusted hash does not follow block {head.number} 0x{head.hash.hex()}:"
                " its network has another genesis block, or the blocks of an earlier start are of another chain."
            )
        return self._number
