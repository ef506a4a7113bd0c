"""The p2p protocol of one connection, without a socket: bytes in, events and bytes out.

    HANDSHAKE   auth and ack; the initiator knows whom it wants to meet, the other side learns who came
    HELLO       both have sent Hello without waiting; nothing else counts before it but Disconnect
    OPEN        messages of shared capabilities, Ping, Pong, Disconnect
    ENDED       the other side has left

Two kinds of failure leave `receive`: `WireError` where the streams are out of step and nothing sensible can be sent any
more, `PeerMisbehaved` where the other side can be told why.
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
from ophion.peers.rlpx.capability import BASE, Capability, Shared, find, negotiate
from ophion.peers.rlpx.disconnect import decode_reason, encode_reason
from ophion.peers.rlpx.hello import Hello
from ophion.runtime.clock import Entropy

MAX_MESSAGE: Final = 2**24 - 1
"""Largest message that is taken at all; sub-protocols have lower limits."""

HELLO_ID, DISCONNECT_ID, PING_ID, PONG_ID = range(4)
_SIZE_BYTES = 2
_CHAIN = "eth"
EMPTY: Final = b"\xc0"
"""The payload of Ping and Pong."""


class Stage(Enum):
    """How far a session is."""

    HANDSHAKE = "handshake"
    HELLO = "hello"
    OPEN = "open"
    ENDED = "ended"


class Identity(Struct, frozen=True):
    """This node on the wire."""

    key: PrivateKey
    hello: Hello
    capabilities: tuple[Capability, ...]

    @property
    def needed(self) -> frozenset[str]:
        """What a peer must share to be of any use: a node that has eth needs it."""
        return frozenset({_CHAIN}) & {one.name for one in self.capabilities}


class Greeted(NamedTuple):
    """The other side said Hello, is who it claims to be, and shares something."""

    hello: Hello
    shared: tuple[Shared, ...]


class Message(NamedTuple):
    """A message of a shared capability."""

    shared: Shared
    code: int
    payload: bytes


class Pinged(NamedTuple):
    """The other side wants to know whether we are there."""


class Left(NamedTuple):
    """The other side is about to close."""

    reason: DisconnectReason | None


class Oversized(NamedTuple):
    """A message over its size limit; its payload was not decompressed."""

    shared: Shared
    code: int
    size: int


Event: TypeAlias = Greeted | Message | Oversized | Pinged | Left
_PINGED = Pinged()


class Session:
    """One side of a connection."""

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
        """`remote_id` names whom this side dials (`WireError` where it is no key); None waits for whoever comes."""
        self._identity = identity
        self._random = entropy.token(wire.HANDSHAKE_ENTROPY)
        self._handshake: wire.Handshake | None = None
        self._frames: wire.Session | None = None
        self._partial = b""
        self._ready: deque[tuple[int, bytes | int]] = deque()
        self._output: list[bytes] = []
        self.stage = Stage.HANDSHAKE
        self.remote_id = remote_id
        """The key the other side has proven; before the handshake, the one that is expected."""
        self.shared: tuple[Shared, ...] = ()
        if remote_id is not None:
            self._handshake = wire.Handshake.initiate(identity.key.secret(), remote_id, self._random)
            self._output.append(self._handshake.auth)

    @property
    def is_initiator(self) -> bool:
        return self._handshake is not None

    @property
    def has_more(self) -> bool:
        """Whether `receive` stopped because it had given enough; calling it with nothing goes on."""
        return bool(self._ready)

    @property
    def buffered(self) -> int:
        """Bytes that were received and belong to something not yet whole."""
        return len(self._partial) if self._frames is None else self._frames.buffered

    def take_output(self) -> bytes:
        """What has to be sent because of the handshake; ask after making the session and after `receive`."""
        if not self._output:
            return b""
        output = b"".join(self._output)
        self._output.clear()
        return output

    def seal(self, messages: Sequence[tuple[int, bytes]]) -> bytes:
        """Messages as bytes for the socket. They must be sent in the order in which they were sealed."""
        assert self._frames is not None, "nothing can be said before the handshake"
        return self._frames.seal(messages)

    def seal_disconnect(self, reason: DisconnectReason) -> bytes:
        """The last thing to send; nothing where no keys are agreed yet."""
        return b"" if self._frames is None else self._frames.seal([(DISCONNECT_ID, encode_reason(reason))])

    def limit(self, message_id: int, size: int) -> None:
        """Limit the payloads of one message id, after decompression; larger ones come as `Oversized`."""
        if self._frames is not None:
            self._frames.set_max_size(message_id, size)

    def close(self) -> None:
        """Nothing more is said or heard: what has arrived in part is let go of."""
        self.stage = Stage.ENDED
        self._frames = None
        self._partial = b""
        self._ready.clear()

    def receive(self, data: bytes, most: int) -> Iterator[Event]:
        """At most so many events of what arrived; the rest waits for the next call, which may come with nothing."""
        if self.stage is Stage.HANDSHAKE:
            data = self._shake_hands(data)
        frames, ready = self._frames, self._ready
        if frames is None or self.stage is Stage.ENDED:
            return
        ready.extend(frames.feed(data))
        if self.stage is Stage.HELLO and ready:
            # it comes alone: what follows is compressed and may be longer
            first = self._first(*ready.popleft())
            yield first
            if isinstance(first, Left):
                return
            ready.extend(frames.feed(b""))
        for _ in range(min(most, len(ready))):
            event = self._event(*ready.popleft())
            if event is not None:
                yield event
                if isinstance(event, Left):
                    ready.clear()
                    return

    def _shake_hands(self, data: bytes) -> bytes:
        """Take the one message of the handshake that is for us; returns what follows it."""
        data = self._partial + data
        announced = int.from_bytes(data[:_SIZE_BYTES], "big")
        size = _SIZE_BYTES + announced
        if len(data) >= _SIZE_BYTES and announced > wire.MAX_HANDSHAKE_SIZE:
            raise WireError(f"handshake: {announced} bytes, at most {wire.MAX_HANDSHAKE_SIZE} are taken")
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
        assert isinstance(payload, bytes), "single messages have no limits before Hello"
        if message_id == DISCONNECT_ID:
            return self._leave(payload)
        if message_id != HELLO_ID:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"message {message_id:#x} before Hello")
        own, hello = self._identity.hello, Hello.decode(payload)
        frames = self._frames
        assert frames is not None
        # whatever follows both Hellos is compressed, a refusal too
        frames.is_compressed = hello.is_compressing and own.is_compressing
        if hello.node_id != self.remote_id:
            raise PeerMisbehaved(DisconnectReason.UNEXPECTED_IDENTITY, "Hello names another node than the handshake")
        if hello.node_id == own.node_id:
            raise PeerMisbehaved(DisconnectReason.CONNECTED_TO_SELF, "this is ourselves")
        self.shared = negotiate(self._identity.capabilities, hello.capabilities)
        if not self.shared or not self._identity.needed <= {one.capability.name for one in self.shared}:
            offered = ", ".join(hello.caps) or "nothing"
            raise PeerMisbehaved(DisconnectReason.USELESS, f"nothing in common: the peer offers {offered}"[:300])
        frames.max_message = MAX_MESSAGE
        for one in self.shared:
            for code, size in one.capability.max_bytes.items():
                frames.set_max_size(one.offset + code, size)
        self.stage = Stage.OPEN
        return Greeted(hello, self.shared)

    def _event(self, message_id: int, payload: bytes | int) -> Event | None:
        if message_id >= BASE:
            shared = find(self.shared, message_id)
            if shared is None:
                raise PeerMisbehaved(DisconnectReason.BREACH, f"message {message_id:#x} belongs to no capability")
            code = message_id - shared.offset
            return Oversized(shared, code, payload) if isinstance(payload, int) else Message(shared, code, payload)
        assert isinstance(payload, bytes), "messages of the p2p protocol have no limits of their own"
        if message_id == PING_ID:
            return _PINGED
        if message_id == DISCONNECT_ID:
            return self._leave(payload)
        if message_id == HELLO_ID:
            raise PeerMisbehaved(DisconnectReason.BREACH, "a second Hello")
        return None  # a Pong has served its purpose by arriving; what lies above is reserved

    def _leave(self, payload: bytes) -> Left:
        self.stage = Stage.ENDED
        return Left(decode_reason(payload))
