"""What the connections of one WebSocket service share: message handler, limits, tokens."""

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
    """Limits of one service."""

    max_connections: int = 4096
    """Above this number a new connection evicts the idlest one."""
    max_frame_bytes: int = 1024 * 1024
    max_message_bytes: int = 4 * 1024 * 1024
    max_unread_bytes: int = 4 * 1024 * 1024
    """Unread notifications of a client beyond which it is disconnected."""
    max_unread_bytes_in_all: int = 128 * 1024 * 1024
    """Unread bytes of all slow readers together; each may use an equal share."""
    handshake_timeout_s: float = 10.0
    """A client must complete its handshake in this time."""
    write_timeout_s: float = 30.0
    """A client must read part of what was sent to it in this time."""
    silence_timeout_s: float = 120.0
    """A client that sends nothing, not even a pong, is disconnected after this time."""


class Conversations(Protocol):
    """Answers the messages of a service; independent of sockets."""

    @property
    def handle(self) -> Callable[..., Reply]:
        """Answers one message, given its connection, which can send notifications later."""

    def close(self) -> None:
        """The service stops."""


class ConnectionSession(Protocol):
    """The session of a token."""

    @property
    def handle(self) -> Callable[..., Reply]:
        """Answers one message; read it anew for each, since it changes when the token ends."""

    @property
    def is_trusted(self) -> bool:
        """Whether the token is valid."""

    @property
    def is_heard(self) -> bool:
        """Whether the client may call any method."""

    @property
    def client(self) -> str | None:
        """Name of the user; None if unknown."""

    def join(self, user: SessionUser) -> None: ...

    def leave(self, user: SessionUser) -> None: ...


class ConnectionGuard(Protocol):
    """Checks the token of a handshake."""

    def connection_session(self, authorization: bytes | None) -> ConnectionSession: ...


class GuardedConversations(Conversations, Protocol):
    """Conversations that may require a token."""

    token_guard: ConnectionGuard | None
    login: Application | None
    """Answers `POST /login` on the port of the service; None if no token is required."""


class WebSocketPolicy(Struct, frozen=True):
    """Settings and callbacks of the connections of one service."""

    conversations: Conversations
    hosts: HostList
    origins: OriginList
    limits: WebSocketLimits
    opened: Callable[[Any], bool]
    """Called with a new connection; False refuses it."""
    closed: Callable[[Any], None]
    login: Application | None = None
    """Answers logins; None if no token is required."""
    guard: ConnectionGuard | None = None
    """Checks tokens."""
    shared: SharedResources = field(default_factory=SharedResources)
    behind: set[Any] = field(default_factory=set)
    """Clients with a full send buffer; they share the limit of unread bytes."""

    def unread_capacity(self) -> int:
        """Maximal unread bytes of one client."""
        limits = self.limits
        share = limits.max_unread_bytes_in_all // max(1, len(self.behind))
        return min(limits.max_unread_bytes, max(_MIN_UNREAD_BYTES, share))
