"""Turns an `Authorization` header into a session, for the transports and for GraphQL.

A session holds the dispatcher of its permissions and the HTTP request heads that carry its token. The connection
compares the next request with these heads (`PlainHeads`) and calls the dispatcher directly. The authenticator caches
sessions of valid tokens, since checking a signature takes longer than most requests. The session knows whether its
token is still valid (session.py).
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Final

from ophion.rpc.auth.method_permissions import allows, permitted_table, refusing_table
from ophion.rpc.auth.session import ClientSession, Session, UnauthenticatedSession
from ophion.rpc.auth.tokens import TokenClaims, TokenReader
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.errors import UNAUTHORIZED, failure
from ophion.rpc.schema.registry import Caller, MethodTable
from ophion.rpc.transport.replies import Answer, Reply
from ophion.runtime.clock import Clock
from ophion.runtime.principal import SUBJECT, TENANT

_MAX_SESSIONS: Final = 256
_MAX_TABLES: Final = 64
_BEARER: Final = b"bearer "
_NO_TOKEN: Final = Answer(401, (failure(b"null", UNAUTHORIZED()),))


class Authenticator:
    """Authenticates the clients of one service."""

    refusal: Final = _NO_TOKEN

    def __init__(
        self,
        reader: TokenReader,
        table: MethodTable,
        loop: asyncio.AbstractEventLoop,
        limits: DispatchLimits,
        clock: Clock,
        exempt: tuple[str, ...] = (),
        make_dispatcher: Callable[..., Dispatcher] = Dispatcher,
    ) -> None:
        self._make_dispatcher = make_dispatcher
        self._reader = reader
        self._table = table
        self._loop = loop
        self._limits = limits
        self._now = clock.now
        self._exempt = exempt
        self._dispatchers: dict[frozenset[str], Dispatcher] = {}
        self._sessions: dict[bytes, Session] = {}
        self._live: weakref.WeakSet[Session] = weakref.WeakSet()
        self._refusing = make_dispatcher(refusing_table(table, exempt), loop, limits)
        self._no_token = UnauthenticatedSession(self._refusing.handle if exempt else _refuse_all, bool(exempt))
        self._invalid_token = UnauthenticatedSession(self._refusing.handle, bool(exempt))
        reader.changed.append(self._recheck)

    def session(self, authorization: bytes | None) -> ClientSession:
        """Return the session of a request with this `Authorization` header. Without a valid token, the session permits
        only methods that need no token.
        """
        if authorization is None or not _has_token(authorization):
            return self._no_token
        known = self._sessions.get(authorization)
        if known is not None:
            if known.check():
                return known
            del self._sessions[authorization]
        claims = self._reader.read(authorization[len(_BEARER) :].strip(), self._now())
        if claims is None:
            return self._invalid_token
        handle = named(claims.username, self._dispatcher(claims.permissions).handle, claims.tenant)
        session = Session(claims, self._left_s, handle, self._refusing.handle, self._loop)
        if not session.is_trusted:
            return self._invalid_token  # the token expired while the node checked its signature
        if len(self._sessions) >= _MAX_SESSIONS:
            self._evict()
        self._sessions[authorization] = session
        self._live.add(session)
        return session

    def connection_session(self, authorization: bytes | None) -> ClientSession:
        """Return the session of a WebSocket handshake with this header. Without a valid token, the session refuses
        every request.
        """
        session = self.session(authorization)
        return self._invalid_token if session is self._no_token else session

    def may(self, authorization: bytes | None, method: str) -> bool:
        """Return whether a request with this `Authorization` header may use a method. GraphQL uses this check."""
        return method in self._exempt or allows(self.session(authorization).permissions, method)

    def close(self) -> None:
        """Cancel the open requests of all dispatchers."""
        self._reader.changed.remove(self._recheck)
        for dispatcher in (self._refusing, *self._dispatchers.values()):
            dispatcher.close()

    def _dispatcher(self, permissions: frozenset[str]) -> Dispatcher:
        known = self._dispatchers.get(permissions)
        if known is None:
            if len(self._dispatchers) >= _MAX_TABLES:
                # evict the oldest dispatcher; sessions that use it keep their own reference
                del self._dispatchers[next(iter(self._dispatchers))]
            table = permitted_table(self._table, permissions, self._exempt)
            known = self._dispatchers[permissions] = self._make_dispatcher(table, self._loop, self._limits)
        return known

    def _left_s(self, claims: TokenClaims) -> float:
        """Return the seconds for which a token with these claims stays valid; 0 if the token is revoked."""
        return claims.expires_at - self._now() if self._reader.admits(claims) else 0.0

    def _recheck(self) -> None:
        """End the sessions whose tokens were revoked in the meantime."""
        for session in tuple(self._live):
            session.check()

    def _evict(self) -> None:
        """Remove ended sessions from the cache.

        If the cache is still full, also remove the oldest session; the connections that hold this session stay open.
        """
        for header in [header for header, session in self._sessions.items() if not session.check()]:
            del self._sessions[header]
        if len(self._sessions) >= _MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]


def named(username: str, handle: Callable[..., Reply], tenant: str | None = None) -> Callable[..., Reply]:
    """Wrap a dispatcher's `handle` so that its requests run as this user (runtime/principal.py)."""
    user = _Named(username, handle, tenant)
    return user.handle if tenant is None else user.handle_of_tenant


class _Named:
    """Runs each request with a user as its principal.

    A class and not a closure, because calling a bound method takes half as long as calling a closure.
    """

    __slots__ = ("_answer", "_tenant", "_username")

    def __init__(self, username: str, answer: Callable[..., Reply], tenant: str | None) -> None:
        self._username = username
        self._answer = answer
        self._tenant = tenant

    def handle(self, body: bytes, caller: Caller | None = None) -> Reply:
        before = SUBJECT.set(self._username)
        try:
            return self._answer(body, caller)
        finally:
            SUBJECT.reset(before)

    def handle_of_tenant(self, body: bytes, caller: Caller | None = None) -> Reply:
        before = TENANT.set(self._tenant)
        try:
            return self.handle(body, caller)
        finally:
            TENANT.reset(before)


def _has_token(authorization: bytes) -> bool:
    return authorization[: len(_BEARER)].lower() == _BEARER


def _refuse_all(body: bytes, caller: Caller | None = None) -> Reply:
    return _NO_TOKEN
