"""Message handler, limits and tokens that all connections of one WebSocket service share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct, field

from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.policy import Application, SessionUser
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.replies import Reply
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.rpc.transport.slow_reader import unread_capacity


class WebSocketLimits(Struct, frozen=True):
    """Limits of one WebSocket service."""

    max_connections: int = 4096
    """Connection limit. Above the limit, a new connection evicts the idlest connection."""
    max_frame_bytes: int = 1024 * 1024
    max_message_bytes: int = 4 * 1024 * 1024
    max_unread_bytes: int = 4 * 1024 * 1024
    """Limit of unread notification bytes per client. A client above this limit is disconnected."""
    max_unread_bytes_in_all: int = 128 * 1024 * 1024
    """Maximum unread bytes of all slow readers together. Each slow reader may use an equal share."""
    handshake_timeout_s: float = 10.0
    """Time within which a client must complete its handshake."""
    write_timeout_s: float = 30.0
    """Time within which a client must read at least a part of the data sent to it."""
    silence_timeout_s: float = 120.0
    """A client that sends nothing for this time, not even a pong, is disconnected."""


class MessageHandler(Protocol):
    """Answers the messages of a service, and does not use sockets."""

    @property
    def handle(self) -> Callable[..., Reply]:
        """The function that answers one message of a connection. The connection may get notifications later."""

    def close(self) -> None:
        """Release resources, because the service stops."""


class ConnectionSession(Protocol):
    """The session of a client's token, as a connection uses it."""

    @property
    def handle(self) -> Callable[..., Reply]:
        """Answers one message. Read this attribute for each message, because it changes when the token ends."""

    @property
    def is_trusted(self) -> bool:
        """Return whether the token is valid."""

    @property
    def may_call(self) -> bool:
        """Return whether the client may call at least one method."""

    @property
    def client(self) -> str | None:
        """Return the name of the user; None if the name is unknown."""

    def join(self, user: SessionUser) -> None: ...

    def leave(self, user: SessionUser) -> None: ...


class ConnectionGuard(Protocol):
    """Checks the token of a WebSocket handshake and returns its session."""

    def connection_session(self, authorization: bytes | None) -> ConnectionSession: ...


class GuardedMessageHandler(MessageHandler, Protocol):
    """A message handler that may require a token."""

    token_guard: ConnectionGuard | None
    login: Application | None
    """Answers `POST /login` on the port of the service; None if no token is required."""


class WebSocketPolicy(Struct, frozen=True):
    """Settings and callbacks of the connections of one service."""

    message_handler: MessageHandler
    hosts: HostList
    origins: OriginList
    limits: WebSocketLimits
    opened: Callable[[Any], bool]
    """Called with a new connection. Returning False refuses the connection."""
    closed: Callable[[Any], None]
    login: Application | None = None
    """Answers logins; None if no token is required."""
    guard: ConnectionGuard | None = None
    """Checks tokens; None if no token is required."""
    shared: SharedResources = field(default_factory=SharedResources)
    behind: set[Any] = field(default_factory=set)
    """Clients with a full send buffer, which share the limit on unread bytes."""

    def unread_capacity(self) -> int:
        """Return the maximum unread bytes of one client."""
        limits = self.limits
        return unread_capacity(limits.max_unread_bytes, limits.max_unread_bytes_in_all, len(self.behind))
