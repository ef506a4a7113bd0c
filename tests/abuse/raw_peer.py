"""A peer that sends arbitrary messages after a correct handshake."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ophion.native import wire
from ophion.native.crypto import PrivateKey
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from tests.abuse.attacker import delivered

HELLO, DISCONNECT, PING, PONG = range(4)
ETH = 0x10
"""First message id of eth when no other protocol is shared."""
PATIENCE_S = 40.0


def new_key() -> PrivateKey:
    """Return a new key, which no node knows."""
    return PrivateKey(os.urandom(32))


def hello(key: PrivateKey, *, name: bytes = b"raw", capabilities: rlp.Encodable = ((b"eth", 68),)) -> bytes:
    """Return a Hello message."""
    return rlp.encode([5, name, capabilities, 0, key.public_key])


@asynccontextmanager
async def dialled(
    enode: Enode, ip: str | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a TCP connection, from the local address `ip` if given."""
    local = None if ip is None else (ip, 0)
    opening = asyncio.open_connection(enode.ip, enode.tcp_port, limit=2**25, local_addr=local)
    reader, writer = await asyncio.wait_for(opening, PATIENCE_S)
    try:
        yield reader, writer
    finally:
        delivered.note(writer)
        writer.transport.abort()


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Return whether the other side closes the connection. Ignores bytes that still arrive."""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(PATIENCE_S):
            while await reader.read(1 << 16):
                pass
    return True


@dataclass
class RawPeer:
    """One connection after the RLPx handshake."""

    key: PrivateKey
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    session: wire.Session
    waiting: deque[tuple[int, bytes]] = field(default_factory=deque)
    reason: bytes | None = None
    """Payload of the received Disconnect; None without a Disconnect."""
    best: bytes | None = None
    """Hash of the node's best block, from its Status."""

    async def receive(self) -> tuple[int, bytes] | None:
        """Return the next message; None when the node has closed the connection. Answers pings."""
        while True:
            while self.waiting:
                code, payload = self.waiting.popleft()
                if code == DISCONNECT:
                    self.reason = payload
                elif code == PING:
                    await self.send(PONG, b"\xc0")
                elif code != PONG:
                    return code, payload
            try:
                async with asyncio.timeout(PATIENCE_S):
                    data = await self.reader.read(1 << 18)
            except ConnectionError:
                return None
            if not data:
                return None
            self.waiting.extend(whole(self.session.feed(data)))

    async def send(self, code: int, payload: bytes) -> None:
        """Send a message, as fast as the node reads. Raises `ConnectionError` when the connection is closed."""
        self.writer.write(self.session.seal([(code, payload)]))
        await self.writer.drain()

    async def expect(self, code: int) -> bytes:
        """Return the payload of the next message with this id."""
        while True:
            message = await self.receive()
            if message is None:
                raise ConnectionError(f"closed while {code:#x} was awaited, with {(self.reason or b'').hex()}")
            if message[0] == code:
                return message[1]

    async def is_cut_off(self) -> bool:
        """Read until the node has closed the connection. Raises `TimeoutError` if the node does not close it."""
        while await self.receive() is not None:
            pass
        return True

    async def greet(self) -> None:
        """Exchange Hello messages with the node."""
        await self.send(HELLO, hello(self.key))
        await self.expect(HELLO)
        self.session.is_compressed = True
        self.session.max_message = 2**24 - 1
        self.waiting.extend(whole(self.session.feed(b"")))

    async def join(self, **changes: rlp.Encodable) -> list[rlp.Item]:
        """Exchange Status messages: send the node's own Status back with some fields changed. Returns the fields of the
        node's Status.
        """
        payload = await self.expect(ETH)
        status = rlp.decode_list(payload)
        assert isinstance(status[3], bytes)
        self.best = status[3]
        names = ("version", "network", "difficulty", "best", "genesis", "fork")
        said = dict(zip(names, status, strict=True)) | changes
        await self.send(ETH, rlp.encode([said[name] for name in names]))
        return status


@asynccontextmanager
async def shaken(enode: Enode, key: PrivateKey | None = None, ip: str | None = None) -> AsyncIterator[RawPeer]:
    """Open a connection and complete the RLPx handshake, but send no Hello."""
    key = key or new_key()
    async with dialled(enode, ip) as (reader, writer):
        handshake = wire.Handshake.initiate(key.secret(), enode.node_id, os.urandom(wire.HANDSHAKE_ENTROPY))
        writer.write(handshake.auth)
        async with asyncio.timeout(PATIENCE_S):
            size = await reader.readexactly(2)
            ack = size + await reader.readexactly(int.from_bytes(size, "big"))
        yield RawPeer(key, reader, writer, handshake.finish(ack))


@asynccontextmanager
async def greeted(enode: Enode, key: PrivateKey | None = None, ip: str | None = None) -> AsyncIterator[RawPeer]:
    """Open a connection and exchange Hello messages."""
    async with shaken(enode, key, ip) as peer:
        await peer.greet()
        yield peer


@asynccontextmanager
async def joined(enode: Enode, **changes: rlp.Encodable) -> AsyncIterator[RawPeer]:
    """Open a connection, and exchange Hello and Status messages."""
    async with greeted(enode) as peer:
        await peer.join(**changes)
        yield peer


def whole(messages: list[tuple[int, bytes | int]]) -> list[tuple[int, bytes]]:
    """Return messages as (id, payload). This peer sets no size limits, so every message has its payload."""
    return [(code, payload) for code, payload in messages if isinstance(payload, bytes)]
