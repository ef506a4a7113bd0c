"""`Session`: the p2p protocol of one connection, without a socket. Bytes in, events and bytes out.

    HANDSHAKE   auth and ack; the initiator knows the remote key, the recipient learns it
    HELLO       both nodes send Hello at once; the peer may send Disconnect instead
    OPEN        messages of shared capabilities, Ping, Pong, Disconnect
    ENDED       a Disconnect was received, or this node has closed the session

`receive` raises `PeerMisbehaved` with the reason to disconnect. It raises `WireError` when the encrypted stream is
broken; then no Disconnect can be sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from ophion.native import wire
from ophion.native.crypto import PrivateKey
from ophion.native.wire import WireError
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.rlpx import hello as hello_message
from ophion.peers.rlpx.capability import BASE, Capability, SharedCapability, find, negotiate
from ophion.peers.rlpx.disconnect import decode_reason, encode_reason
from ophion.peers.rlpx.hello import Hello
from ophion.runtime.clock import Entropy

MAX_MESSAGE: Final = 2**24 - 1
"""Size limit of a message in bytes. Sub-protocols have lower limits."""

HELLO_ID, DISCONNECT_ID, PING_ID, PONG_ID = range(4)
_SIZE_BYTES = 2
_CHAIN = "eth"
EMPTY: Final = b"\xc0"
"""The payload of Ping and Pong."""


class Stage(Enum):
    """Stage of a session, from the RLPx handshake to the end."""

    HANDSHAKE = "handshake"
    HELLO = "hello"
    OPEN = "open"
    ENDED = "ended"


class Identity(Struct, frozen=True):
    """Key, Hello and capabilities of the local node."""

    key: PrivateKey
    hello: Hello
    capabilities: tuple[Capability, ...]

    @property
    def needed(self) -> frozenset[str]:
        """Capabilities that a peer must share: `eth`, if this node offers it."""
        return frozenset({_CHAIN}) & {one.name for one in self.capabilities}


class HelloReceived(NamedTuple):
    """A valid Hello was received, with shared capabilities."""

    hello: Hello
    shared: tuple[SharedCapability, ...]


class Message(NamedTuple):
    """Event: a message of a shared capability was received."""

    shared: SharedCapability
    code: int
    payload: bytes


class PingReceived(NamedTuple):
    """Event: a Ping was received."""


class DisconnectReceived(NamedTuple):
    """Event: a Disconnect was received."""

    reason: DisconnectReason | None


class OversizedMessage(NamedTuple):
    """Event: a message above its size limit was received. The payload of such a message is not decompressed."""

    shared: SharedCapability
    code: int
    size: int


Event: TypeAlias = HelloReceived | Message | OversizedMessage | PingReceived | DisconnectReceived
_PINGED = PingReceived()


class Session:
    """The p2p protocol state of one connection."""

    __slots__ = (
        "_frames",
        "_handshake",
        "_identity",
        "_output",
        "_partial",
        "_random",
        "_ready",
        "remote_id",
        "shared",
        "stage",
    )

    def __init__(self, identity: Identity, entropy: Entropy, remote_id: bytes | None = None) -> None:
        """Create the session. `remote_id` is the key of the dialled node, or None for an inbound connection. Raises
        `WireError` for an invalid key.
        """
        self._identity = identity
        self._random = entropy.token(wire.HANDSHAKE_ENTROPY)
        self._handshake: wire.Handshake | None = None
        self._frames: wire.Session | None = None
        self._partial = b""
        self._ready: deque[tuple[int, bytes | int]] = deque()
        self._output: list[bytes] = []
        self.stage = Stage.HANDSHAKE
        self.remote_id = remote_id
        """Public key of the remote node. The handshake proves this key."""
        self.shared: tuple[SharedCapability, ...] = ()
        if remote_id is not None:
            self._handshake = wire.Handshake.initiate(identity.key.secret(), remote_id, self._random)
            self._output.append(self._handshake.auth)

    @property
    def is_initiator(self) -> bool:
        return self._handshake is not None

    @property
    def has_more(self) -> bool:
        """Whether `receive` stopped at its limit of events. The next call of `receive`, even without data, then yields
        more events.
        """
        return bool(self._ready)

    @property
    def buffered(self) -> int:
        """Number of received bytes of an incomplete message."""
        return len(self._partial) if self._frames is None else self._frames.buffered

    def take_output(self) -> bytes:
        """Return the handshake bytes to send. Callers use this after creating the session and after each `receive`."""
        if not self._output:
            return b""
        output = b"".join(self._output)
        self._output.clear()
        return output

    def seal(self, messages: Sequence[tuple[int, bytes]]) -> bytes:
        """Encrypt messages. The results must be sent in the order of the calls."""
        assert self._frames is not None, "no keys before the handshake"
        return self._frames.seal(messages)

    def seal_disconnect(self, reason: DisconnectReason) -> bytes:
        """Encrypt a Disconnect. Returns no bytes before the handshake is complete."""
        return b"" if self._frames is None else self._frames.seal([(DISCONNECT_ID, encode_reason(reason))])

    def limit(self, message_id: int, size: int) -> None:
        """Limit the payload of a message id after decompression. Larger messages become `OversizedMessage` events."""
        if self._frames is not None:
            self._frames.set_max_size(message_id, size)

    def close(self) -> None:
        """End the session and drop partial messages."""
        self.stage = Stage.ENDED
        self._frames = None
        self._partial = b""
        self._ready.clear()

    def receive(self, data: bytes, most: int) -> Iterator[Event]:
        """Process received bytes and yield at most `most` events. Further events come from the next call, which needs
        no data.
        """
        if self.stage is Stage.HANDSHAKE:
            data = self._continue_handshake(data)
        frames, ready = self._frames, self._ready
        if frames is None or self.stage is Stage.ENDED:
            return
        ready.extend(frames.feed(data))
        if self.stage is Stage.HELLO and ready:
            # handle Hello before the next message, because messages after Hello are compressed and may be larger
            first = self._first(*ready.popleft())
            yield first
            if isinstance(first, DisconnectReceived):
                return
            ready.extend(frames.feed(b""))
        for _ in range(min(most, len(ready))):
            event = self._event(*ready.popleft())
            if event is not None:
                yield event
                if isinstance(event, DisconnectReceived):
                    ready.clear()
                    return

    def _continue_handshake(self, data: bytes) -> bytes:
        """Read the auth or ack message. Returns the bytes that follow it."""
        data = self._partial + data
        announced = int.from_bytes(data[:_SIZE_BYTES], "big")
        size = _SIZE_BYTES + announced
        if len(data) >= _SIZE_BYTES and announced > wire.MAX_HANDSHAKE_SIZE:
            raise WireError(f"handshake: {announced} bytes, the limit is {wire.MAX_HANDSHAKE_SIZE}")
        if len(data) < size:
            self._partial = data
            return b""
        self._partial = b""
        message, rest = data[:size], data[size:]
        if self._handshake is not None:
            self._frames = self._handshake.finish(message)
        else:
            secret = self._identity.key.secret()
            ack, self.remote_id, self._frames = wire.Handshake.answer(secret, message, self._random)
            self._output.append(ack)
        self._frames.max_message = hello_message.MAX_SIZE
        self._output.append(self._frames.seal([(HELLO_ID, self._identity.hello.encode())]))
        self.stage = Stage.HELLO
        return rest

    def _first(self, message_id: int, payload: bytes | int) -> Event:
        assert isinstance(payload, bytes), "no limits by message id before Hello"
        if message_id == DISCONNECT_ID:
            return self._leave(payload)
        if message_id != HELLO_ID:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"message {message_id:#x} before Hello")
        own, hello = self._identity.hello, Hello.decode(payload)
        frames = self._frames
        assert frames is not None
        # after both nodes have sent Hello, all messages are compressed, Disconnect included
        frames.is_compressed = hello.is_compressing and own.is_compressing
        if hello.node_id != self.remote_id:
            raise PeerMisbehaved(DisconnectReason.UNEXPECTED_IDENTITY, "Hello and handshake have different node ids")
        if hello.node_id == own.node_id:
            raise PeerMisbehaved(DisconnectReason.CONNECTED_TO_SELF, "connected to itself")
        self.shared = negotiate(self._identity.capabilities, hello.capabilities)
        if not self.shared or not self._identity.needed <= {one.capability.name for one in self.shared}:
            offered = ", ".join(hello.caps) or "nothing"
            raise PeerMisbehaved(DisconnectReason.USELESS, f"no shared capability: the peer offers {offered}"[:300])
        frames.max_message = MAX_MESSAGE
        for one in self.shared:
            for code, size in one.capability.max_bytes.items():
                frames.set_max_size(one.offset + code, size)
        self.stage = Stage.OPEN
        return HelloReceived(hello, self.shared)

    def _event(self, message_id: int, payload: bytes | int) -> Event | None:
        if message_id >= BASE:
            shared = find(self.shared, message_id)
            if shared is None:
                raise PeerMisbehaved(DisconnectReason.BREACH, f"message {message_id:#x} belongs to no capability")
            code = message_id - shared.offset
            return (
                OversizedMessage(shared, code, payload) if isinstance(payload, int) else Message(shared, code, payload)
            )
        assert isinstance(payload, bytes), "messages of the p2p protocol have no limits by message id"
        if message_id == PING_ID:
            return _PINGED
        if message_id == DISCONNECT_ID:
            return self._leave(payload)
        if message_id == HELLO_ID:
            raise PeerMisbehaved(DisconnectReason.BREACH, "a second Hello")
        # a Pong or a reserved id needs no event, because any received message already resets the idle timer
        return None

    def _leave(self, payload: bytes) -> DisconnectReceived:
        self.stage = Stage.ENDED
        return DisconnectReceived(decode_reason(payload))
