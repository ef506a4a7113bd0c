"""`POST /login`: a name and a password against a token.

Hashing a password is slow on purpose, so it has one thread of its own and a short queue: many logins at a time delay
each other and nobody else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

import orjson

from ophion.rpc.auth.credentials import CredentialsError, User, checked_user, read_users
from ophion.rpc.auth.tokens import TokenIssuer
from ophion.rpc.transport.http.wire import Response
from ophion.rpc.transport.replies import Answer, Complete, Pending
from ophion.runtime.clock import Clock
from ophion.runtime.lanes import LaneFull, ThreadLane

logger = logging.getLogger(__name__)

_MAX_WAITING: Final = 32
_MAX_BODY_BYTES: Final = 4096
_MALFORMED: Final = Response(400)
_REFUSED: Final = Answer(401, ())
_UNREADABLE: Final = Answer(500, ())
_BUSY: Final = Response(503, headers=b"Retry-After: 1\r\n")


class Login:
    """Logs users of a credentials file in."""

    def __init__(self, path: Path, issuer: TokenIssuer, clock: Clock) -> None:
        self._path = path
        self._issuer = issuer
        self._clock = clock
        self._lane = ThreadLane("login", 1, _MAX_WAITING)

    def respond(self, body: bytes) -> Pending[Complete] | Response:
        """The answer to a login; it comes later, since hashing takes its time."""
        if len(body) > _MAX_BODY_BYTES:
            return Response(413)
        try:
            wanted = orjson.loads(body)
        except orjson.JSONDecodeError:
            return _MALFORMED
        name = wanted.get("username") if isinstance(wanted, dict) else None
        password = wanted.get("password") if isinstance(wanted, dict) else None
        if not isinstance(name, str) or not isinstance(password, str):
            return _MALFORMED
        try:
            future = self._lane.submit(self._check(name, password))
        except LaneFull:
            return _BUSY
        pending: Pending[Complete] = Pending(future.cancel)
        future.add_done_callback(lambda done: None if done.cancelled() else pending.resolve(self._answer(done)))
        return pending

    def close(self) -> None:
        """Give the thread back."""
        self._lane.close()

    def _check(self, name: str, password: str) -> Callable[[], User | None]:
        return lambda: checked_user(read_users(self._path), name, password)

    def _answer(self, done: asyncio.Future[User | None]) -> Complete:
        error = done.exception()
        if isinstance(error, CredentialsError):
            logger.error("nobody can log in: %s", error)
            return _UNREADABLE
        if error is not None:
            logger.error("login failed", exc_info=error)
            return _UNREADABLE
        user = done.result()
        if user is None:
            return _REFUSED
        token = self._issuer.issue(user.name, user.permissions, self._clock.now())
        return b'{"token":"%b"}' % token.encode()
