"""Application, limits and tokens that all connections of one HTTP service share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr

from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.messages import Request, Response
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.replies import Answer, PendingReply, Reply
from ophion.rpc.transport.shared_resources import SharedResources

Result: TypeAlias = Reply | Response | PendingReply[Response]
"""Result of an application: a JSON reply (now or later) or an HTTP response."""


class Application(Protocol):
    """Answers the HTTP requests of a service, and does not use sockets."""

    plain: Callable[..., Result] | None
    """Answers an API call. The arguments are the request body and the connection. None if the application has no API
    calls.

    An API call is a `POST /`. An application may set another path (`call_path`) or require a media type (`call_kind`).
    """

    def respond(self, request: Request) -> Result:
        """Answer a request that is not an API call and that passed the host and origin checks."""

    def close(self) -> None:
        """Release resources, because the service stops."""


class HttpLimits(Struct, frozen=True):
    """Limits of one HTTP service."""

    max_connections: int = 4096
    """Connection limit. Above the limit, a new connection evicts the idlest connection."""
    max_body_bytes: int = 16 * 1024 * 1024
    max_head_bytes: int = 64 * 1024
    read_timeout_s: float = 30.0
    """Time within which a request that has started must be complete."""
    write_timeout_s: float = 30.0
    """Time within which a client must read at least a part of its answers."""
    idle_timeout_s: float = 600.0
    """Seconds without requests after which a connection is closed."""


class Session(Protocol):
    """The permissions of a client, while its token is valid.

    A connection stores the session, never its `handle`. When the session ends, `handle` refuses every request. So a
    stored request head is useless after its token has ended.
    """

    heads: PlainHeads

    @property
    def handle(self) -> Callable[..., Result]:
        """Answers an API call. The arguments are the request body and the connection."""

    @property
    def is_trusted(self) -> bool:
        """Return whether the client has a valid token, or no token is required."""

    @property
    def may_call(self) -> bool:
        """Return whether the client may call any method. If not, its request bodies are dropped."""

    @property
    def client(self) -> str | None:
        """Return the name of the user; None if the name is unknown."""


class OpenSession:
    """The session of all clients if no token is required."""

    __slots__ = ("handle", "heads")

    is_trusted = True
    may_call = True
    client = None

    def __init__(self, handle: Callable[..., Result], heads: PlainHeads) -> None:
        self.handle = handle
        self.heads = heads


class SessionUser(Protocol):
    """A connection that must close when its token ends."""

    def session_ended(self) -> None:
        """Close the connection, because the token is no longer valid."""


class TokenGuard(Protocol):
    """Checks tokens. Selects the session of an API call by its `Authorization` header."""

    @property
    def refusal(self) -> Answer:
        """Return the answer to a request without permission, whose body was dropped."""

    def session(self, authorization: bytes | None) -> Session: ...


class HttpPolicy(Struct, frozen=True):
    """Settings and callbacks of the connections of one service."""

    application: Application
    hosts: HostList
    origins: OriginList
    limits: HttpLimits
    heads: PlainHeads
    opened: Callable[[Any], bool]
    """Called with a new connection. Returning False refuses the connection."""
    closed: Callable[[Any], None]
    guard: TokenGuard | None = None
    """Checks tokens; None if no token is required."""
    shared: SharedResources = field(default_factory=SharedResources)
    open_session: OpenSession | None = None
    """The session of all clients if no token is required; None if the application has no API calls."""
    call_path: bytes = b"/"
    call_kind: bytes | None = None

    def __post_init__(self) -> None:
        application, handle = self.application, self.application.plain
        force_setattr(self, "open_session", None if handle is None else OpenSession(handle, self.heads))
        force_setattr(self, "call_path", getattr(application, "call_path", b"/"))
        force_setattr(self, "call_kind", getattr(application, "call_kind", None))
