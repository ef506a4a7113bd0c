"""`POST /login`: exchanges a name and a password for a token.

Hashing a password is slow on purpose, so it runs in its own thread behind a short queue. Logins delay only other
logins, and addresses with many failed logins wait longest (login_throttle.py). Each login reads the credentials file,
and a timer checks the file for changes. When a user is removed or changed, its tokens end.
"""

from __future__ import annotations

import asyncio
import logging
import math
from bisect import insort
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from ophion.rpc.auth.credentials import CredentialsError, User, checked_user, read_users
from ophion.rpc.auth.login_throttle import LoginThrottle
from ophion.rpc.auth.tokens import TokenIssuer
from ophion.rpc.transport.http.messages import JSON, Response
from ophion.rpc.transport.replies import PendingReply
from ophion.runtime.clock import Clock
from ophion.runtime.thread_pools import ThreadLane

logger = logging.getLogger(__name__)

_MAX_WAITING: Final = 32
_MAX_BODY_BYTES: Final = 4096
_CHECK_INTERVAL_S: Final = 5.0
_MALFORMED: Final = Response(400)
_REFUSED: Final = Response(401)
_UNREADABLE: Final = Response(500)
_BUSY: Final = Response(503, headers=b"Retry-After: 1\r\n")


class _Attempt(NamedTuple):
    """A queued login. Attempts sort in the order in which they are checked."""

    rank: int
    number: int
    address: str
    name: str
    password: str
    pending: PendingReply[Response]


class Login:
    """Answers logins: checks name and password against the credentials file and issues a token."""

    def __init__(self, path: Path, issuer: TokenIssuer, clock: Clock) -> None:
        self._path = path
        self._issuer = issuer
        self._clock = clock
        self._attempts = LoginThrottle(clock.monotonic)
        self._lane = ThreadLane("login", 1, None)
        self._waiting: list[_Attempt] = []
        self._is_hashing = False
        self._numbers = count()
        self._stamp: tuple[int, ...] = ()
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start a timer that checks the credentials file for changes."""
        if self._timer is None:
            self._timer = loop.call_later(_CHECK_INTERVAL_S, self._check_file, loop)

    def respond(self, body: bytes, address: str) -> PendingReply[Response] | Response:
        """Answer a login from an IP address. A well-formed login is answered later, after hashing, unless it must wait
        (429).
        """
        if len(body) > _MAX_BODY_BYTES:
            return Response(413)
        try:
            fields = orjson.loads(body)
        except orjson.JSONDecodeError:
            return _MALFORMED
        name = fields.get("username") if isinstance(fields, dict) else None
        password = fields.get("password") if isinstance(fields, dict) else None
        if not isinstance(name, str) or not isinstance(password, str):
            return _MALFORMED
        pause_s = self._attempts.pause_s(address, name)
        if pause_s > 0:
            return Response(429, headers=b"Retry-After: %d\r\n" % math.ceil(pause_s))
        return self._queue(address, name, password)

    def close(self) -> None:
        """Stop the login thread and drop queued logins."""
        if self._timer is not None:
            self._timer.cancel()
        self._waiting.clear()
        self._lane.close()

    # --- in the login thread ---------------------------------------------------------------------

    def _check(self, name: str, password: str) -> tuple[dict[str, User], User | None]:
        users = read_users(self._path)
        return users, checked_user(users, name, password)

    def _users_if_changed(self) -> dict[str, User] | None:
        """Return the users if the credentials file has changed since the last call, else None."""
        status = self._path.stat()
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        return read_users(self._path)

    # --- on the event loop -----------------------------------------------------------------------

    def _check_file(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = loop.call_later(_CHECK_INTERVAL_S, self._check_file, loop)
        self._lane.submit(self._users_if_changed).add_done_callback(self._file_checked)

    def _file_checked(self, done: asyncio.Future[dict[str, User] | None]) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            # keep the tokens valid, because the credentials file may be half written at this moment
            logger.warning("cannot read credentials error=%s", error)
            return
        users = done.result()
        if users is not None:
            self._issuer.update_users(users, self._clock.now())

    def _queue(self, address: str, name: str, password: str) -> PendingReply[Response] | Response:
        """Queue a login. If the queue is full, the login replaces a login of lower priority. Returns `_BUSY` if
        no queued login has lower priority.
        """
        rank = self._attempts.rank(address, name)
        pending: PendingReply[Response] = PendingReply(lambda: self._give_up(attempt))
        attempt = _Attempt(rank, next(self._numbers), address, name, password, pending)
        if len(self._waiting) >= _MAX_WAITING:
            if attempt > self._waiting[-1]:
                return _BUSY
            self._waiting.pop().pending.resolve(_BUSY)
        self._attempts.record_attempt(address, name)
        insort(self._waiting, attempt)
        self._start_next()
        return pending

    def _give_up(self, attempt: _Attempt) -> None:
        """Drop a queued login whose client has disconnected."""
        if attempt in self._waiting:
            self._waiting.remove(attempt)

    def _start_next(self) -> None:
        """Check the next login if the thread is free."""
        if self._is_hashing or not self._waiting:
            return
        self._is_hashing = True
        attempt = self._waiting.pop(0)
        future = self._lane.submit(lambda: self._check(attempt.name, attempt.password))
        future.add_done_callback(lambda done: self._checked(attempt, done))

    def _checked(self, attempt: _Attempt, done: asyncio.Future[tuple[dict[str, User], User | None]]) -> None:
        self._is_hashing = False
        if not done.cancelled():
            attempt.pending.resolve(self._answer(attempt, done))
            self._start_next()

    def _answer(self, attempt: _Attempt, done: asyncio.Future[tuple[dict[str, User], User | None]]) -> Response:
        error = done.exception()
        if isinstance(error, CredentialsError):
            logger.error("cannot log users in error=%s", error)
            return _UNREADABLE
        if error is not None:
            logger.error("login failed", exc_info=error)
            return _UNREADABLE
        users, user = done.result()
        now = self._clock.now()
        self._issuer.update_users(users, now)
        if user is None:
            return _REFUSED
        self._attempts.succeeded(attempt.address, attempt.name)
        token = self._issuer.issue(user.name, user.permissions, now, user.tenant)
        return Response(200, (b'{"token":"%b"}' % token.encode(),), JSON)
