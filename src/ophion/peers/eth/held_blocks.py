"""`HeldBlocks`: bounds the blocks that peers have sent and that are not imported yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from ophion.peers.eth.peer import EthPeer
from ophion.primitives.types import Hash32

MAX_HELD: Final = 64
"""Limit of held blocks per peer. Held blocks wait for their parent, their timestamp or the import of other blocks."""
MAX_HELD_BYTES: Final = 16 * 1024 * 1024
MAX_UNKNOWN_BYTES: Final = 32 * 1024 * 1024
"""Limit of held bytes of all unknown peers together. Blocks from validators, static nodes and permitted nodes do not
count.
"""


class _Block(Struct, frozen=True):
    """A held block with the peer that sent it."""

    peer: EthPeer
    size: int
    is_unknown: bool


class _Quota(Struct):
    """Number and size of the held blocks of one peer."""

    blocks: int = 0
    size: int = 0


class HeldBlocks:
    """Blocks between their arrival and the end of their import, counted against the quota of their sender."""

    def __init__(self, is_member: Callable[[EthPeer], bool]) -> None:
        self._is_member = is_member
        self._blocks: dict[Hash32, _Block] = {}
        self._quotas: dict[EthPeer, _Quota] = {}
        self._unknown_bytes = 0

    def __contains__(self, hash: Hash32) -> bool:
        return hash in self._blocks

    def __len__(self) -> int:
        return len(self._blocks) + len(self._quotas)

    def sender(self, hash: Hash32) -> EthPeer:
        """Return the peer that sent a held block."""
        return self._blocks[hash].peer

    def add(self, peer: EthPeer, hash: Hash32, size: int) -> bool:
        """Count a block against its sender's quota. Returns False if this or the unknown peers' quota is used up."""
        quota = self._quotas.get(peer, _Quota())
        is_unknown = not self._is_member(peer)
        if quota.blocks >= MAX_HELD or (quota.blocks and quota.size + size > MAX_HELD_BYTES):
            return False
        if is_unknown and self._unknown_bytes and self._unknown_bytes + size > MAX_UNKNOWN_BYTES:
            return False
        self._quotas[peer] = quota
        quota.blocks += 1
        quota.size += size
        self._unknown_bytes += size * is_unknown
        self._blocks[hash] = _Block(peer, size, is_unknown)
        return True

    def take_over(self, peer: EthPeer, hash: Hash32, size: int) -> bool:
        """Count a block of an unknown peer against the quota of a network member instead.

        `peer` is the member, which has sent the block too. Returns False if the first sender is a member already, if
        `peer` is no member, or if the quota of `peer` is used up.
        """
        block = self._blocks[hash]
        if not block.is_unknown or not self._is_member(peer):
            return False
        self.remove(hash)
        if self.add(peer, hash, size):
            return True
        self.add(block.peer, hash, block.size)
        return False

    def remove(self, hash: Hash32, sender: EthPeer | None = None) -> None:
        """Release a block and its share of the sender's quota, if the block is held. With `sender`, release only a
        block of this peer.
        """
        block = self._blocks.get(hash)
        if block is None or (sender is not None and block.peer is not sender):
            return
        del self._blocks[hash]
        if block.is_unknown:
            self._unknown_bytes -= block.size
        quota = self._quotas.get(block.peer)
        if quota is not None:
            quota.blocks -= 1
            quota.size -= block.size
            if not quota.blocks:
                # delete an empty quota here, because the block may have arrived after `left` ran for its peer
                del self._quotas[block.peer]

    def left(self, peer: EthPeer) -> None:
        """Forget the quota of a peer that has left."""
        self._quotas.pop(peer, None)
