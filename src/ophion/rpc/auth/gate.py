"""From an `Authorization` header to a session: what the transports ask, and GraphQL too.

A session holds the dispatcher of its permissions and the heads of requests that were seen to belong to it, so the
connection recognises the next request by its bytes (`PlainHeads`) and comes straight to the dispatcher. Tokens that
were found valid are remembered, since checking a signature costs more than most requests.

No request asks what time it is. A session that has users sets a timer instead, and takes itself away from them when its
token ends (`SessionUser.session_ended`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from ophion.rpc.auth.permissions import allows, permitted_table
from ophion.rpc.auth.tokens import TokenReader
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.errors import UNAUTHORIZED, failure
from ophion.rpc.language.registry import Bound, Caller
from ophion.rpc.transport.http.policy import PlainHeads, SessionUser
from ophion.rpc.transport.replies import Answer, Reply
from ophion.runtime.clock import Clock

_MAX_SESSIONS: Final = 256
_MAX_TABLES: Final = 64
_HEADS_OF_SESSION: Final = 32
_LONGEST_HEAD: Final = 4096
_LOOK_S: Final = 5.0
"""How often a session looks at the clock, which somebody may have set."""
_BEARER: Final = b"bearer "
_NO_TOKEN: Final = Answer(401, (failure(b"null", UNAUTHORIZED()),))
_NEVER: Final = float("inf")
_NOTHING: Final[frozenset[str]] = frozenset()


class Session:
    """What the bearer of one token may do, as long as the token is good."""

    __slots__ = ("_loop", "_now", "_timer", "_users", "expires_at", "handle", "heads", "permissions")

    def __init__(
        self,
        handle: Callable[[bytes, Caller | None], Reply],
        permissions: frozenset[str],
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], float],
        expires_at: float = _NEVER,
        longest_head: int = 0,
    ) -> None:
        self.handle: Callable[..., Reply] = handle
        """Answers one message. Whoever keeps this must be a user of the session, to hear of its end."""
        self.permissions = permissions
        self.expires_at = expires_at
        self.heads = PlainHeads(_HEADS_OF_SESSION, longest_head)
        self._loop = loop
        self._now = now
        self._users: set[SessionUser] = set()
        self._timer: asyncio.TimerHandle | None = None

    def join(self, user: SessionUser) -> None:
        """Somebody works with this session from now on and wants to hear of its end."""
        if self.expires_at < _NEVER:
            self._users.add(user)
            if self._timer is None:
                self._watch()

    def leave(self, user: SessionUser) -> None:
        """Somebody does not any more; leaving twice does no harm."""
        self._users.discard(user)
        if not self._users and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _watch(self) -> None:
        left_s = self.expires_at - self._now()
        if left_s > 0:
            self._timer = self._loop.call_later(min(left_s, _LOOK_S), self._watch)
            return
        self._timer = None
        users, self._users = self._users, set()
        for user in users:
            user.session_ended()


class Gate:
    """The door of one service."""

    def __init__(
        self,
        reader: TokenReader,
        table: Mapping[str, Bound],
        loop: asyncio.AbstractEventLoop,
        limits: DispatchLimits,
        clock: Clock,
        exempt: tuple[str, ...] = (),
    ) -> None:
        self._reader = reader
        self._table = table
        self._loop = loop
        self._limits = limits
        self._now = clock.now
        self._exempt = exempt
        self._dispatchers: dict[frozenset[str], Dispatcher] = {}
        self._sessions: dict[bytes, Session] = {}
        self._refusing = self._made(_NOTHING)
        # heads without a good token are not learned: what they mean may change
        self._stranger = Session(self._refusing.handle if exempt else _refuse_all, _NOTHING, loop, clock.now)
        self._forger = Session(self._refusing.handle, _NOTHING, loop, clock.now)

    def session(self, authorization: bytes | None) -> Session:
        """What a request with this header may do; one without a token is told so whatever it asks."""
        if authorization is None or not _has_token(authorization):
            return self._stranger
        session = self._sessions.get(authorization)
        now = self._now()
        if session is not None and now < session.expires_at:
            return session
        claims = self._reader.read(authorization[len(_BEARER) :].strip(), now)
        if claims is None:
            return self._forger
        if len(self._sessions) >= _MAX_SESSIONS:
            self._forget(now)
        handle = self._dispatcher(claims.permissions).handle
        session = Session(handle, claims.permissions, self._loop, self._now, claims.expires_at, _LONGEST_HEAD)
        self._sessions[authorization] = session
        return session

    def connection_session(self, authorization: bytes | None) -> Session:
        """The session of a WebSocket, by its handshake; a socket without a good token is refused request by request."""
        session = self.session(authorization)
        return self._forger if session is self._stranger else session

    def may(self, authorization: bytes | None, method: str) -> bool:
        """Whether a request with this header may use a method: the check for interfaces that are not JSON-RPC."""
        return method in self._exempt or allows(self.session(authorization).permissions, method)

    def close(self) -> None:
        """Give up what is still waiting."""
        for dispatcher in (self._refusing, *self._dispatchers.values()):
            dispatcher.close()

    def _dispatcher(self, permissions: frozenset[str]) -> Dispatcher:
        known = self._dispatchers.get(permissions)
        if known is None:
            if len(self._dispatchers) >= _MAX_TABLES:
                # its sessions keep it as long as they need it
                del self._dispatchers[next(iter(self._dispatchers))]
            known = self._dispatchers[permissions] = self._made(permissions)
        return known

    def _made(self, permissions: frozenset[str]) -> Dispatcher:
        return Dispatcher(permitted_table(self._table, permissions, self._exempt), self._loop, self._limits)

    def _forget(self, now: float) -> None:
        """Make room: sessions that have ended, or else the oldest; those who use it may go on."""
        for header in [header for header, session in self._sessions.items() if session.expires_at <= now]:
            del self._sessions[header]
        if len(self._sessions) >= _MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]


def _has_token(authorization: bytes) -> bool:
    return authorization[: len(_BEARER)].lower() == _BEARER


def _refuse_all(body: bytes, caller: Caller | None = None) -> Reply:
    return _NO_TOKEN
