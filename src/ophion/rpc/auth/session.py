"""A session: the one place where somebody's token is good or is not.

Whoever works with a session holds the session itself and asks it for `handle` each time. As long as the token is good
that is the dispatcher of its permissions; from then on it is the one that refuses everything, whatever else has
happened, in whichever order. No request asks what time it is: a session has a timer, which belongs to the session and
not to those who use it. A connection that must not stay open without its token (WebSocket) joins.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from typing import Final, Protocol

from ophion.rpc.auth.tokens import Claims
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.policy import Session as HttpSession
from ophion.rpc.transport.http.policy import SessionUser
from ophion.rpc.transport.replies import Reply

_HEADS: Final = 32
_LONGEST_HEAD: Final = 4096
_LOOK_S: Final = 5.0
"""How often a session looks at the clock, which somebody may have set."""
_NOTHING: Final[frozenset[str]] = frozenset()


class Bearer(HttpSession, Protocol):
    """What somebody with or without a good token may do, and who wants to hear of its end."""

    @property
    def handle(self) -> Callable[..., Reply]:
        """The dispatcher of these permissions."""

    @property
    def permissions(self) -> frozenset[str]:
        """What is permitted at this moment."""

    def join(self, user: SessionUser) -> None:
        """Somebody wants to hear of the end of the token."""

    def leave(self, user: SessionUser) -> None:
        """Somebody does not any more; leaving twice does no harm."""


class Stranger:
    """Somebody who has no good token. Heads are not learned: what they mean may change."""

    __slots__ = ("handle", "heads", "is_heard")

    is_trusted = False
    permissions = _NOTHING
    client = None

    def __init__(self, handle: Callable[..., Reply], is_heard: bool = False) -> None:
        self.handle = handle
        self.is_heard = is_heard
        self.heads = PlainHeads(0, 0)

    def join(self, user: SessionUser) -> None:
        """What never was does not end."""

    def leave(self, user: SessionUser) -> None:
        """Nobody has joined."""


class Session:
    """What the bearer of one token may do, as long as the token is good."""

    __slots__ = ("__weakref__", "_claims", "_left_s", "_loop", "_refuse", "_users", "handle", "heads", "is_trusted")

    def __init__(
        self,
        claims: Claims,
        left_s: Callable[[Claims], float],
        handle: Callable[..., Reply],
        refuse: Callable[..., Reply],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """`left_s`: for how long a token with these claims is good; after that `refuse` takes the place of `handle`."""
        self._claims = claims
        self._left_s = left_s
        self._refuse = refuse
        self._loop = loop
        self._users: set[SessionUser] = set()
        self.handle: Callable[..., Reply] = handle
        self.heads = PlainHeads(_HEADS, _LONGEST_HEAD)
        self.is_trusted = True
        self._watch()

    @property
    def is_heard(self) -> bool:
        return self.is_trusted

    @property
    def permissions(self) -> frozenset[str]:
        return self._claims.permissions if self.look() else _NOTHING

    @property
    def client(self) -> str:
        return self._claims.username

    def look(self) -> bool:
        """Whether the token is good at this moment; a session that has ended does not begin again."""
        if self.is_trusted and self._left_s(self._claims) <= 0:
            self._end()
        return self.is_trusted

    def join(self, user: SessionUser) -> None:
        if self.look():
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
        """Look again when the time is up, and now and then before."""
        if self.look():
            delay = min(self._left_s(self._claims), _LOOK_S)
            self._loop.call_later(max(0.0, delay), _watch, weakref.ref(self))


def _watch(found: weakref.ref[Session]) -> None:
    """The timer of a session; it does not keep one alive that nobody has any more."""
    session = found()
    if session is not None:
        session._watch()
