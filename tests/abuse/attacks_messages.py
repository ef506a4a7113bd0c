"""Single messages of every kind and shape, each from a new peer. None may block the event loop of a node."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ophion.native import wire
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from tests.abuse import peer_target
from tests.abuse.message_shapes import eth_messages, payloads
from tests.abuse.raw_peer import ETH, HELLO, RawPeer, hello, joined, shaken

PAUSE_S = 0.02
CONSENSUS_CODES = 4
CONSENSUS_MAX_BYTES = 1 << 20
SMALL_MAX_BYTES = 64 * 1024
"""Maximum payload size in the short form of an attack."""


async def peer_messages(target: peer_target.Target) -> None:
    """Every message of eth and of consensus in every shape, each at its size limit and over a new connection."""
    is_full = target.scale == 1
    messages = eth_messages() if is_full else eth_messages(SMALL_MAX_BYTES)
    for _, code, payload in messages:
        await said(target.enode, code, payload)
    for code in range(CONSENSUS_CODES):
        for _, payload in payloads(CONSENSUS_MAX_BYTES if is_full else SMALL_MAX_BYTES):
            await said_to_validator(target.enode, code, payload)


async def said(enode: Enode, code: int, payload: bytes) -> None:
    """Send one message after Status."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, wire.WireError, TimeoutError):
        async with joined(enode) as peer:
            await peer.send(ETH + code, payload)
            await asyncio.sleep(PAUSE_S)


async def said_to_validator(enode: Enode, code: int, payload: bytes) -> None:
    """Send one message of IBF/1 after the Hellos."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, wire.WireError, TimeoutError):
        async with sharing(enode, ((b"IBF", 1), (b"eth", 68))) as peer:
            await peer.send(ETH + code, payload)
            await asyncio.sleep(PAUSE_S)


@asynccontextmanager
async def sharing(enode: Enode, capabilities: rlp.Encodable) -> AsyncIterator[RawPeer]:
    """Open a connection with these capabilities, up to the Hellos."""
    async with shaken(enode) as peer:
        await peer.send(HELLO, hello(peer.key, capabilities=capabilities))
        await peer.expect(HELLO)
        peer.session.is_compressed = True
        peer.session.max_message = 2**24 - 1
        yield peer
