"""Connects two nodes of one process by a sub-protocol, without sockets.

Each message arrives at the other side in a later iteration of the event loop, in order, and is recorded. There is no
encryption and no framing. All code above the connection is real.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from ophion.errors import DecodeError
from ophion.native.crypto import PrivateKey
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.peer import Peer
from ophion.peers.rlpx.capability import SharedCapability, negotiate
from ophion.peers.rlpx.hello import Hello
from ophion.peers.subprotocol import Attached, Subprotocol


class PeerLink:
    """One end of a connection. Implements `Link`: the node at this end uses it to send to the peer at the other end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_open = True
        self.waiting_bytes = 0
        """Number of bytes that the other end has not read. Tests set this number."""
        self.sent: list[tuple[int, bytes]] = []
        """(code, payload) of every message that this end has sent."""
        self.ended: tuple[DisconnectReason, str] | None = None
        """Reason for which this end closed the connection."""
        self.intercept: Callable[[int, bytes], bytes | None] | None = None
        """Called with each message that this end sends. Returns the payload to send, or None to drop the message."""
        self.other: PeerLink | None = None
        self.attached: Attached | None = None
        self.tasks: set[asyncio.Task[None]] = set()
        self.limits: dict[int, int] = {}
        """Maximum payload size by message code."""

    def send(self, shared: SharedCapability, code: int, payload: bytes, may_drop: bool) -> bool:
        if not self.is_open:
            return False
        self.sent.append((code, payload))
        changed = payload if self.intercept is None else self.intercept(code, payload)
        if changed is not None and self.other is not None:
            asyncio.get_running_loop().call_soon(self.other.deliver, code, changed)
        return True

    def deliver(self, code: int, payload: bytes) -> None:
        """Receive a message at this end."""
        if self.is_open and self.attached is not None:
            is_oversized = len(payload) > self.limits.get(code, len(payload))
            if is_oversized:
                self._guarded(partial(self.attached.oversized, code, len(payload)))
            else:
                self._guarded(partial(self.attached.received, code, payload))

    def limit(self, shared: SharedCapability, code: int, size: int) -> None:
        self.limits[code] = size

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        if not self.is_open:
            work.close()
            return False
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)
        return True

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled():
            self._guarded(task.result)

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except PeerMisbehaved as error:
            self.disconnect(error.reason, str(error))
        except DecodeError as error:
            self.disconnect(DisconnectReason.BREACH, str(error))

    def disconnect(self, reason: DisconnectReason, text: str = "") -> None:
        if not self.is_open:
            return
        self.ended = (reason, text)
        self.close()
        if self.other is not None:
            asyncio.get_running_loop().call_soon(self.other.close)

    def close(self) -> None:
        """Close the connection."""
        if self.is_open:
            self.is_open = False
            for task in tuple(self.tasks):
                task.cancel()
            if self.attached is not None:
                self.attached.closed()

    def codes(self) -> list[int]:
        """Return the codes of the messages that this end has sent."""
        return [code for code, _ in self.sent]


_KEYS = [PrivateKey(bytes([number]) * 32) for number in range(101, 131)]


def connect(
    one: Subprotocol,
    other: Subprotocol,
    keys: tuple[PrivateKey, PrivateKey] | None = None,
    offers: Sequence[int] | None = None,
    intercept: Callable[[int, bytes], bytes | None] | None = None,
) -> tuple[PeerLink, PeerLink]:
    """Connect two nodes. Returns the end at `one` and the end at `other`.

    `offers` limits the protocol versions. `intercept` may change all messages of `other`.
    """
    a, b = PeerLink("one"), PeerLink("other")
    b.intercept = intercept
    a.other, b.other = b, a
    key_a, key_b = keys or (_KEYS[0], _KEYS[1])
    names = [(cap.name, cap.version) for cap in other.capabilities if offers is None or cap.version in offers]
    shared = negotiate(one.capabilities, names)
    version = shared[0].capability.version
    ends = ("127.0.0.1", 1), ("127.0.0.1", 2)
    for wire, protocol, remote_key, remote, is_inbound in ((a, one, key_b, other, False), (b, other, key_a, one, True)):
        hello = Hello.of("test", remote.capabilities, 0, remote_key.public_key)
        peer = Peer(wire, hello, shared, local=ends[0], remote=ends[1], is_inbound=is_inbound, since=0.0)
        wire.attached = protocol.attach(peer, version)
    return a, b
