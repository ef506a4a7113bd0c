"""Session: decides whether a token is valid.

A connection holds the session and reads `handle` for each request. While the token is valid, `handle` is the dispatcher
of the token's permissions. Afterwards `handle` refuses every request. A timer of the session checks the time, so
requests need not. A WebSocket connection must close when its token ends. So it registers with the session (`join`).
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Final, Protocol

from ophion.rpc.auth.tokens import TokenClaims
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.policy import Session as HttpSession
from ophion.rpc.transport.http.policy import SessionUser
from ophion.rpc.transport.replies import Reply

_MAX_HEADS: Final = 32
_MAX_HEAD_BYTES: Final = 4096
_CHECK_INTERVAL_S: Final = 5.0
"""Maximum seconds between two checks of the clock, because an operator may change the system time."""
_NOTHING: Final[frozenset[str]] = frozenset()


class ClientSession(HttpSession, Protocol):
    """The session of one client, whether or not the client has a valid token."""

    @property
    def handle(self) -> Callable[..., Reply]:
        """The function that answers requests with the permissions of this session."""

    @property
    def permissions(self) -> frozenset[str]:
        """The methods that this session permits now."""

    def join(self, user: SessionUser) -> None:
        """Register a connection. The session calls the connection's `session_ended` when the token ends."""

    def leave(self, user: SessionUser) -> None:
        """Remove a connection that `join` has added; may be called twice."""


class UnauthenticatedSession:
    """The session of a request without a valid token. The fast path does not remember the HTTP head of such a request,
    because a token that is not valid yet may become valid later.
    """

    __slots__ = ("handle", "heads", "may_call")

    is_trusted = False
    permissions = _NOTHING
    client = None

    def __init__(self, handle: Callable[..., Reply], may_call: bool = False) -> None:
        self.handle = handle
        self.may_call = may_call
        self.heads = PlainHeads(0, 0)

    def join(self, user: SessionUser) -> None:
        """Do nothing, because this session never ends."""

    def leave(self, user: SessionUser) -> None:
        """Do nothing, because `join` has not stored the connection."""


class Session:
    """The session of one token."""

    __slots__ = ("__weakref__", "_claims", "_left_s", "_loop", "_refuse", "_users", "handle", "heads", "is_trusted")

    def __init__(
        self,
        claims: TokenClaims,
        left_s: Callable[[TokenClaims], float],
        handle: Callable[..., Reply],
        refuse: Callable[..., Reply],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Create a session for a valid token.

        `left_s` returns the seconds for which a token with these claims stays valid. When the session ends, `refuse`
        replaces `handle`.
        """
        self._claims = claims
        self._left_s = left_s
        self._refuse = refuse
        self._loop = loop
        self._users: set[SessionUser] = set()
        self.handle: Callable[..., Reply] = handle
        self.heads = PlainHeads(_MAX_HEADS, _MAX_HEAD_BYTES)
        self.is_trusted = True
        self._watch()

    @property
    def may_call(self) -> bool:
        return self.is_trusted

    @property
    def permissions(self) -> frozenset[str]:
        return self._claims.permissions if self.check() else _NOTHING

    @property
    def client(self) -> str:
        return self._claims.username

    def check(self) -> bool:
        """Check whether the token is valid now. If not, the session ends and stays ended."""
        if self.is_trusted and self._left_s(self._claims) <= 0:
            self._end()
        return self.is_trusted

    def join(self, user: SessionUser) -> None:
        if self.check():
            self._users.add(user)
        else:
            user.session_ended()

    def leave(self, user: SessionUser) -> None:
        self._users.discard(user)

    def _end(self) -> None:
        self.is_trusted = False
        self.handle = self._refuse
        self.heads = PlainHeads(0, 0)
        users, self._users = self._users, set()
        for user in users:
            user.session_ended()

    def _watch(self) -> None:
        """Check the token, and schedule the next check, at the latest for the time when the token expires."""
        if self.check():
            delay = min(self._left_s(self._claims), _CHECK_INTERVAL_S)
            self._loop.call_later(max(0.0, delay), _watch, weakref.ref(self))


def _watch(found: weakref.ref[Session]) -> None:
    """Timer callback that checks a session. The timer holds a weak reference, so that unused sessions are freed."""
    session = found()
    if session is not None:
        session._watch()
