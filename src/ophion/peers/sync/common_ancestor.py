"""Finds the common ancestor with a peer (networking.md 4.3)."""

from __future__ import annotations

from typing import Final

from ophion.chain.chain import Chain
from ophion.consensus.engine import Finality
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.eth.messages import GetHeaders
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.requests import RequestFailed
from ophion.primitives.header import HashedHeader

NEAR: Final = 12
"""Number of headers in the first request. Most reorganisations are shorter."""
FAR: Final = 192
DEEPEST: Final = 90_000
"""Maximum reorganisation depth, in blocks."""
_WHAT: Final = "common ancestor"


async def common_ancestor(peer: EthPeer, chain: Chain) -> HashedHeader:
    """Return the highest canonical block that the peer also has. Raises `PeerMisbehaved` (another chain),
    `RequestFailed`.
    """
    head = chain.head
    start = min(head.number, peer.height)
    is_final = chain.engine.finality is Finality.IMMEDIATE
    for count in (1,) if is_final else (NEAR, FAR):
        found = await peer.headers(GetHeaders(start, min(count, start + 1), reverse=True))
        if not found:
            peer.useless("it does not have the headers it must have")
            raise RequestFailed(_WHAT, f"no header {start}")
        shared = next((header for header in found if chain.is_canonical(header)), None)
        if shared is not None:
            return shared
        if is_final:
            # blocks are final in this network, so a peer with another block at a height that this node has reached is
            # on another chain
            raise PeerMisbehaved(DisconnectReason.BREACH, f"it is on another chain: its block {found[0]} is not ours")
    return await _search(peer, chain, found[-1].number, head.number)


async def _search(peer: EthPeer, chain: Chain, different: int, head: int) -> HashedHeader:
    """Find the common ancestor by binary search between genesis and the lowest block known to differ."""
    shared = chain.genesis
    while different - shared.number > 1:
        middle = (shared.number + different) // 2
        found = await peer.headers(GetHeaders(middle, 1))
        if not found:
            peer.useless("it does not have the headers it must have")
            raise RequestFailed(_WHAT, f"no header {middle}")
        if chain.is_canonical(found[0]):
            shared = found[0]
        else:
            different = middle
    if head - shared.number > DEEPEST:
        raise PeerMisbehaved(DisconnectReason.BREACH, f"its chain forked {head - shared.number} blocks below our head")
    return shared
