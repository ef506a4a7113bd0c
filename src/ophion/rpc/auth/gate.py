"""From an `Authorization` header to a session: what the transports ask, and GraphQL too.

A session holds the dispatcher of its permissions and the heads of requests that were seen to belong to it, so the
connection recognises the next request by its bytes (`PlainHeads`) and comes straight to `Session.handle`. Tokens that
were found valid are remembered, since checking a signature costs more than most requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from ophion.rpc.auth.permissions import allows, permitted_table
from ophion.rpc.auth.tokens import Claims, TokenReader
from ophion.rpc.dispatcher import Answer, Dispatcher, DispatchLimits, Reply, failure
from ophion.rpc.errors import UNAUTHORIZED
from ophion.rpc.http_connection import PlainHeads
from ophion.rpc.registry import Bound, Caller
from ophion.runtime.clock import Clock

_MAX_SESSIONS: Final = 256
_MAX_TABLES: Final = 64
_HEADS_OF_SESSION: Final = 32
_LONGEST_HEAD: Final = 4096
_BEARER: Final = b"bearer "
_NO_TOKEN: Final = Answer(401, (failure(b"null", UNAUTHORIZED()),))
_NEVER: Final = float("inf")


class Session:
    """What the bearer of one token may do, as long as the token is good."""

    __slots__ = ("expires_at", "handle", "heads")

    def __init__(
        self,
        handle: Callable[[bytes, Caller | None], Reply],
        expired: Callable[[bytes, Caller | None], Reply],
        now: Callable[[], float],
        expires_at: float = _NEVER,
        longest_head: int = 0,
    ) -> None:
        def guarded(body: bytes, caller: Caller | None = None) -> Reply:
            if now() < expires_at:
                return handle(body, caller)
            return expired(body, caller)

        self.handle = guarded
        """Answers one message; after the end of the token only what needs none."""
        self.expires_at = expires_at
        self.heads = PlainHeads(_HEADS_OF_SESSION, longest_head)


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
        self._refusing = self._made(frozenset())
        # heads without a good token are not learned: what they mean may change
        self._stranger = Session(self._refusing.handle if exempt else _refuse_all, _refuse_all, clock.now)
        self._forger = Session(self._refusing.handle, self._refusing.handle, clock.now)

    def session(self, authorization: bytes | None) -> Session:
        """The session of a request over HTTP, by its header.

        Without a token every body is refused alike; with a bad one each request is refused under its own id
        (json-rpc.md 1.11).
        """
        if authorization is None or not _has_token(authorization):
            return self._stranger
        session = self._sessions.get(authorization)
        if session is not None:
            return session
        claims = self.claims(authorization)
        if claims is None:
            return self._forger
        if len(self._sessions) >= _MAX_SESSIONS:
            self._forget()
        permitted = self._dispatcher(claims.permissions).handle
        session = Session(permitted, self._refusing.handle, self._now, claims.expires_at, _LONGEST_HEAD)
        self._sessions[authorization] = session
        return session

    def connection_session(self, authorization: bytes | None) -> Session:
        """The session of a WebSocket, by its handshake; a socket without a good token is refused request by request."""
        session = self.session(authorization)
        return self._forger if session is self._stranger else session

    def claims(self, authorization: bytes | None) -> Claims | None:
        """What the token of a header says; None when there is none, or no good one."""
        if authorization is None or not _has_token(authorization):
            return None
        return self._reader.read(authorization[len(_BEARER) :].strip(), self._now())

    def may(self, authorization: bytes | None, method: str) -> bool:
        """Whether a request with this header may use a method: the check for interfaces that are not JSON-RPC."""
        if method in self._exempt:
            return True
        claims = self.claims(authorization)
        return claims is not None and allows(claims.permissions, method)

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

    def _forget(self) -> None:
        """Make room: sessions that have ended, or else the oldest."""
        now = self._now()
        for header in [header for header, session in self._sessions.items() if session.expires_at <= now]:
            del self._sessions[header]
        if len(self._sessions) >= _MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]


def _has_token(authorization: bytes) -> bool:
    return authorization[: len(_BEARER)].lower() == _BEARER


def _refuse_all(body: bytes, caller: Caller | None) -> Reply:
    return _NO_TOKEN
