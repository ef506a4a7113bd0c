"""What the connections of one HTTP service share: the application behind them, limits, who may ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr

from ophion.rpc.transport.access import HostList, OriginList
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.messages import Request, Response
from ophion.rpc.transport.replies import Answer, Pending, Reply
from ophion.rpc.transport.shared_resources import SharedResources

Result: TypeAlias = Reply | Response | Pending[Response]
"""What an application gives: a JSON reply, now or later, or a response of its own making."""


class Application(Protocol):
    """What a service does with requests; it knows nothing of sockets."""

    plain: Callable[..., Result] | None
    """What a call is handed to, its body and its connection; None where there is no such thing.

    A call is a `POST /`; of another path (`call_path`), or with one kind of content alone (`call_kind`), where an
    application says so.
    """

    def respond(self, request: Request) -> Result:
        """Any other request that passed host list and origins."""

    def close(self) -> None:
        """The service stops."""


class HttpLimits(Struct, frozen=True):
    """What a service allows its clients."""

    max_connections: int = 4096
    """When there are as many, the idlest gives way to a newcomer."""
    max_body_bytes: int = 16 * 1024 * 1024
    max_head_bytes: int = 64 * 1024
    read_timeout_s: float = 30.0
    """A request that has begun must be complete after this time."""
    write_timeout_s: float = 30.0
    """A client must take something of its answers in this time."""
    idle_timeout_s: float = 600.0
    """A connection without requests is closed after this time."""


class Session(Protocol):
    """What somebody may do.

    A connection keeps the session and never its `handle`: when the session ends, `handle` becomes the one that refuses,
    so that nothing which was learned with a token can outlive it.
    """

    heads: PlainHeads

    @property
    def handle(self) -> Callable[..., Result]:
        """What the body of a call is handed to, together with the connection it came over."""

    @property
    def is_trusted(self) -> bool:
        """Whether somebody has shown who he is, where that is asked."""

    @property
    def is_heard(self) -> bool:
        """Whether there is anything that he may ask; otherwise his request is not kept."""

    @property
    def client(self) -> str | None:
        """Who it is, where that is known."""


class OpenSession:
    """The session of everybody, where no token is needed."""

    __slots__ = ("handle", "heads")

    is_trusted = True
    is_heard = True
    client = None

    def __init__(self, handle: Callable[..., Result], heads: PlainHeads) -> None:
        self.handle = handle
        self.heads = heads


class SessionUser(Protocol):
    """A connection that must not go on when the token of its user has ended."""

    def session_ended(self) -> None:
        """The token is not good any more."""


class Guard(Protocol):
    """Who looks at tokens; a call of a guarded service goes to the session of its header."""

    @property
    def refusal(self) -> Answer:
        """The answer to a request that was not kept."""

    def session(self, authorization: bytes | None) -> Session: ...


class HttpPolicy(Struct, frozen=True):
    """What the connections of one service share."""

    application: Application
    hosts: HostList
    origins: OriginList
    limits: HttpLimits
    heads: PlainHeads
    opened: Callable[[Any], bool]
    """Called with a new connection; False refuses it."""
    closed: Callable[[Any], None]
    guard: Guard | None = None
    """None where no token is needed."""
    shared: SharedResources = field(default_factory=SharedResources)
    everybody: OpenSession | None = None
    """The session of those who need no token; None where tokens are asked for, or nothing takes a call."""
    call_path: bytes = b"/"
    call_kind: bytes | None = None

    def __post_init__(self) -> None:
        application, handle = self.application, self.application.plain
        force_setattr(self, "everybody", None if handle is None else OpenSession(handle, self.heads))
        force_setattr(self, "call_path", getattr(application, "call_path", b"/"))
        force_setattr(self, "call_kind", getattr(application, "call_kind", None))
