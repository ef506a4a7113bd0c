"""What the connections of one WebSocket service share: who answers, limits, who may ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

from msgspec import Struct, field

from ophion.rpc.transport.access import HostList, OriginList
from ophion.rpc.transport.http.policy import Application, SessionUser
from ophion.rpc.transport.replies import Reply
from ophion.rpc.transport.shared_resources import SharedResources

_MIN_UNREAD_BYTES: Final = 128 * 1024


class WebSocketLimits(Struct, frozen=True):
    """What the service allows its clients."""

    max_connections: int = 4096
    """When there are as many, the idlest gives way to a newcomer."""
    max_frame_bytes: int = 1024 * 1024
    max_message_bytes: int = 4 * 1024 * 1024
    max_unread_bytes: int = 4 * 1024 * 1024
    """Notifications a client may leave unread before it is cut off."""
    max_unread_bytes_in_all: int = 128 * 1024 * 1024
    """What all clients that are behind may leave unread together; each has its share."""
    handshake_timeout_s: float = 10.0
    """A client that connects must have said what it wants after this time."""
    write_timeout_s: float = 30.0
    """A client must take something of what is sent to it in this time."""
    silence_timeout_s: float = 120.0
    """A client that sends nothing, not even an answer to a ping, is gone after this time."""


class Conversations(Protocol):
    """What a service does with messages; it knows nothing of sockets."""

    @property
    def handle(self) -> Callable[..., Reply]:
        """Answers one message; the connection it came over can be talked to later."""

    def close(self) -> None:
        """The service stops."""


class ConnectionSession(Protocol):
    """What the bearer of one token may do."""

    @property
    def handle(self) -> Callable[..., Reply]:
        """Answers one message, for this once."""

    @property
    def is_trusted(self) -> bool:
        """Whether there is a good token."""

    @property
    def is_heard(self) -> bool:
        """Whether there is anything that may be asked."""

    @property
    def client(self) -> str | None:
        """Whose token it is."""

    def join(self, user: SessionUser) -> None: ...

    def leave(self, user: SessionUser) -> None: ...


class ConnectionGuard(Protocol):
    """Who looks at the token of a handshake."""

    def connection_session(self, authorization: bytes | None) -> ConnectionSession: ...


class GuardedConversations(Conversations, Protocol):
    """Conversations that may ask for a token."""

    token_guard: ConnectionGuard | None
    login: Application | None
    """What a `POST /login` on the port of the service goes to; None where no token is needed."""


class WebSocketPolicy(Struct, frozen=True):
    """What the connections of the service share."""

    conversations: Conversations
    hosts: HostList
    origins: OriginList
    limits: WebSocketLimits
    opened: Callable[[Any], bool]
    """Called for a new connection; False turns it away."""
    closed: Callable[[Any], None]
    login: Application | None = None
    """Where clients log in; None where no token is needed."""
    guard: ConnectionGuard | None = None
    """Who looks at the tokens."""
    shared: SharedResources = field(default_factory=SharedResources)
    behind: set[Any] = field(default_factory=set)
    """Clients that do not take what is sent to them at this moment; they share the room for unread messages."""

    def room(self) -> int:
        """Bytes that one client may leave unread."""
        limits = self.limits
        share = limits.max_unread_bytes_in_all // max(1, len(self.behind))
        return min(limits.max_unread_bytes, max(_MIN_UNREAD_BYTES, share))
