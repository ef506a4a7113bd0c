"""`Peer`: one live connection after both Hellos, as everybody above the connection sees it."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Final, Protocol

from ophion.native.crypto import address_of
from ophion.peers.disconnect_reasons import DisconnectReason
from ophion.peers.rlpx.capability import Shared
from ophion.peers.rlpx.hello import Hello
from ophion.primitives.enode import Enode

FIRST_SCORE: Final = 100
BEST_SCORE: Final = 150


class Link(Protocol):
    """What carries a peer's messages: a connection, or something in a test that looks like one."""

    @property
    def is_open(self) -> bool: ...

    def send(self, shared: Shared, code: int, payload: bytes, may_drop: bool) -> bool: ...

    def limit(self, shared: Shared, code: int, size: int) -> None: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool: ...

    def disconnect(self, reason: DisconnectReason, text: str) -> None: ...


class _Gone:
    """The link of a peer whose connection is over."""

    is_open = False

    def send(self, shared: Shared, code: int, payload: bytes, may_drop: bool) -> bool:
        return False

    def limit(self, shared: Shared, code: int, size: int) -> None:
        """No message arrives any more."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        work.close()
        return False

    def disconnect(self, reason: DisconnectReason, text: str) -> None:
        """It is over already."""


_GONE: Final = _Gone()


class Peer:
    """A node this one is connected with. Lives as long as its connection; never comes back."""

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
    )

    def __init__(
        self,
        link: Link,
        hello: Hello,
        shared: Sequence[Shared],
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
        """How validators know each other."""
        self.hello = hello
        self.local = local
        self.remote = remote
        self.is_inbound = is_inbound
        """Whether the other side connected to us."""
        self.is_static = is_static
        """Whether this node keeps the connection up; may change while it lives."""
        self.is_permitted = False
        """Whether the permission rules name this node."""
        self.since = since
        """Wall time of Hello."""
        self.score = FIRST_SCORE
        # some clients do not say where they listen: then it is where they were found
        port = hello.listen_port or (0 if is_inbound else remote[1])
        self.enode = Enode(hello.node_id, remote[0], port, port)
        """Address of the socket with the listen port of Hello."""

    @property
    def is_open(self) -> bool:
        """Whether anything sent now has a chance to arrive."""
        return self._link.is_open

    def version(self, capability: str) -> int | None:
        """The agreed version of a capability; None where it is not shared."""
        shared = self._shared.get(capability)
        return None if shared is None else shared.capability.version

    def send(self, capability: str, code: int, payload: bytes, *, may_drop: bool = False) -> bool:
        """Queue a message of a shared capability; False when it will not be sent.

        The queue is bounded in bytes. With `may_drop` (gossip) a full queue refuses the message; without, a peer that
        does not take what it asked for is disconnected.
        """
        return self._link.send(self._shared[capability], code, payload, may_drop)

    def limit(self, capability: str, code: int, size: int) -> None:
        """Accept no larger payload of this code from now on, counted after decompression."""
        self._link.limit(self._shared[capability], code, size)

    def spawn(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run slow work for this peer, cancelled with the connection; False, and nothing runs, when there is too much.

        `PeerMisbehaved` and `DecodeError` out of it end the connection as they do out of a handler.
        """
        return self._link.spawn(work)

    def disconnect(self, reason: DisconnectReason, text: str = "") -> None:
        """End the connection; the peer is told the reason, the text is for the log."""
        self._link.disconnect(reason, text)

    def praise(self) -> None:
        """A good answer."""
        self.score = min(self.score + 1, BEST_SCORE)

    def blame(self, points: int = 1) -> None:
        """A useless or late answer."""
        self.score -= points

    def unlink(self) -> None:
        """The connection is over: whoever keeps the peer does not keep what carried its messages."""
        self._link = _GONE

    def __repr__(self) -> str:
        host = f"[{self.remote[0]}]" if ":" in self.remote[0] else self.remote[0]
        return f"{self.id[:4].hex()}@{host}:{self.remote[1]}"
