"""`Peer`: a connected node, as the layers above the connection see it."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Final, Protocol

from ophion.native.crypto import address_of
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.rlpx.capability import SharedCapability
from ophion.peers.rlpx.hello import Hello
from ophion.primitives.enode import Enode

FIRST_SCORE: Final = 100
BEST_SCORE: Final = 150


class Link(Protocol):
    """Interface of a connection for its `Peer`: send, limit, spawn, disconnect."""

    @property
    def is_open(self) -> bool: ...

    @property
    def waiting_bytes(self) -> int: ...

    def send(self, shared: SharedCapability, code: int, payload: bytes, may_drop: bool) -> bool: ...

    def limit(self, shared: SharedCapability, code: int, size: int) -> None: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool: ...

    def disconnect(self, reason: DisconnectReason, text: str) -> None: ...


class _Gone:
    """Replaces the link of a peer whose connection has ended."""

    is_open = False
    waiting_bytes = 0

    def send(self, shared: SharedCapability, code: int, payload: bytes, may_drop: bool) -> bool:
        return False

    def limit(self, shared: SharedCapability, code: int, size: int) -> None:
        """Do nothing, because no more messages arrive."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        work.close()
        return False

    def disconnect(self, reason: DisconnectReason, text: str) -> None:
        """Do nothing, because the connection has ended."""


_GONE: Final = _Gone()


class Peer:
    """A connected node. A reconnect creates a new object."""

    __slots__ = (
        "__weakref__",
        "_link",
        "_shared",
        "address",
        "enode",
        "hello",
        "id",
        "is_inbound",
        "is_permitted",
        "is_static",
        "local",
        "remote",
        "score",
        "since",
        "validator_address",
    )

    def __init__(
        self,
        link: Link,
        hello: Hello,
        shared: Sequence[SharedCapability],
        *,
        local: tuple[str, int],
        remote: tuple[str, int],
        is_inbound: bool,
        since: float,
        is_static: bool = False,
    ) -> None:
        self._link = link
        self._shared = {one.capability.name: one for one in shared}
        self.id = hello.node_id
        """The 64-byte public key, proven in the handshake."""
        self.address = address_of(hello.node_id)
        """Ethereum address that belongs to the node key."""
        self.validator_address = self.address
        """Address of the validator that the node acts for. Differs from `address` if the validator has its own key."""
        self.hello = hello
        self.local = local
        self.remote = remote
        self.is_inbound = is_inbound
        """Whether the remote node dialled us."""
        self.is_static = is_static
        """Whether the peer is a static peer. May change during the connection."""
        self.is_permitted = False
        """Whether the permission rules name the peer."""
        self.since = since
        """Unix time of Hello."""
        self.score = FIRST_SCORE
        # some clients announce no listen port, so use the port that this node dialled, or 0 for an inbound peer
        port = hello.listen_port or (0 if is_inbound else remote[1])
        self.enode = Enode(hello.node_id, remote[0], port, port)
        """Enode of the peer: the IP of its socket and the listen port from its Hello."""

    @property
    def is_open(self) -> bool:
        """Whether messages can still be sent to the peer."""
        return self._link.is_open

    @property
    def waiting_bytes(self) -> int:
        """Queued bytes that this peer has not read."""
        return self._link.waiting_bytes

    def version(self, capability: str) -> int | None:
        """Return the negotiated version of a capability, or None if the capability is not shared."""
        shared = self._shared.get(capability)
        return None if shared is None else shared.capability.version

    def send(self, capability: str, code: int, payload: bytes, *, may_drop: bool = False) -> bool:
        """Queue a message of a shared capability. Returns False when the message will not be sent.

        The queue is bounded in bytes. If it is full and `may_drop` is set (gossip), the message is dropped. Otherwise
        the peer is disconnected as a slow reader.
        """
        return self._link.send(self._shared[capability], code, payload, may_drop)

    def limit(self, capability: str, code: int, size: int) -> None:
        """Limit the payload size of messages with this code, after decompression."""
        self._link.limit(self._shared[capability], code, size)

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run a task until the connection ends. Returns False after the end, or for too many tasks.

        `PeerMisbehaved` and `DecodeError` raised by the task end the connection.
        """
        return self._link.spawn(work)

    def disconnect(self, reason: DisconnectReason, text: str = "") -> None:
        """Disconnect with a reason. The text is only logged, not sent."""
        self._link.disconnect(reason, text)

    def reward(self) -> None:
        """Raise the score after a useful response."""
        self.score = min(self.score + 1, BEST_SCORE)

    def penalize(self, points: int = 1) -> None:
        """Lower the score, for example after a useless or late response."""
        self.score -= points

    def unlink(self) -> None:
        """Drop the reference to the ended connection, so that the connection is freed while other parts still
        refer to the peer.
        """
        self._link = _GONE

    def __repr__(self) -> str:
        host = f"[{self.remote[0]}]" if ":" in self.remote[0] else self.remote[0]
        return f"{self.id[:4].hex()}@{host}:{self.remote[1]}"
