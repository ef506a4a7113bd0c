"""`POST /login`: a name and a password against a token.

Hashing a password is slow on purpose, so it has one thread of its own and a short queue: many logins at a time delay
each other and nobody else. The file of users is read at each login, and looked at every few seconds besides: who is not
in it any more, or is in it otherwise, loses the tokens he has.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
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
_LOOK_S: Final = 5.0
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
        self._stamp: tuple[int, ...] = ()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at the file from time to time, from now on."""
        if self._timer is None:
            self._timer = loop.call_later(_LOOK_S, self._look, loop)

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
            future = self._lane.submit(lambda: self._check(name, password))
        except LaneFull:
            return _BUSY
        pending: Pending[Complete] = Pending(future.cancel)
        future.add_done_callback(lambda done: None if done.cancelled() else pending.resolve(self._answer(done)))
        return pending

    def close(self) -> None:
        """Give the thread back."""
        if self._timer is not None:
            self._timer.cancel()
        self._lane.close()

    # --- in the lane -----------------------------------------------------------------------------

    def _check(self, name: str, password: str) -> tuple[dict[str, User], User | None]:
        users = read_users(self._path)
        return users, checked_user(users, name, password)

    def _if_changed(self) -> dict[str, User] | None:
        """The users, when the file is not the one that was looked at last."""
        status = self._path.stat()
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        return read_users(self._path)

    # --- on the loop -----------------------------------------------------------------------------

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(_LOOK_S, self._look, loop)
        with contextlib.suppress(LaneFull):
            self._lane.submit(self._if_changed).add_done_callback(self._looked)

    def _looked(self, done: asyncio.Future[dict[str, User] | None]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            # whoever has a token keeps it: a file that is being written must not end anybody's work
            logger.warning("the users cannot be read: %s", error)
            return
        users = done.result()
        if users is not None:
            self._issuer.note(users, self._clock.now())

    def _answer(self, done: asyncio.Future[tuple[dict[str, User], User | None]]) -> Complete:
        error = done.exception()
        if isinstance(error, CredentialsError):
            logger.error("nobody can log in: %s", error)
            return _UNREADABLE
        if error is not None:
            logger.error("login failed", exc_info=error)
            return _UNREADABLE
        users, user = done.result()
        now = self._clock.now()
        self._issuer.note(users, now)
        if user is None:
            return _REFUSED
        token = self._issuer.issue(user.name, user.permissions, now)
        return b'{"token":"%b"}' % token.encode()
