"""Tests the validity of a session, for any order of events."""

from __future__ import annotations

import asyncio
import gc
import itertools
import weakref
from collections.abc import Callable

import pytest

from ophion.rpc.auth.session import Session, UnauthenticatedSession
from ophion.rpc.auth.tokens import TokenClaims
from ophion.rpc.transport.replies import Reply

CLAIMS = TokenClaims("ali", frozenset({"eth:*"}), 100.0)


def serve(body: bytes) -> Reply:
    return b"served"


def refuse(body: bytes) -> Reply:
    return b"refused"


class User:
    """A connection that counts notifications."""

    told = 0

    def __init__(self) -> None:
        self.received = asyncio.Event()

    def session_ended(self) -> None:
        self.told += 1
        self.received.set()


class Time:
    """An event loop that stores its timers, and the remaining time of a token."""

    def __init__(self) -> None:
        self.left_s = 10.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay: float, callback: Callable[..., None], *arguments: object) -> None:
        self.timers.append((delay, lambda: callback(*arguments)))

    def tick(self) -> None:
        timers, self.timers = self.timers, []
        for _, run in timers:
            run()


def session(time: Time) -> Session:
    return Session(CLAIMS, lambda claims: time.left_s, serve, refuse, time)  # type: ignore[arg-type]


def test_as_long_as_the_token_is_good() -> None:
    time, user = Time(), User()
    one = session(time)
    one.join(user)
    time.left_s = 0.001
    time.tick()
    assert (one.handle(b""), one.permissions, one.client, user.told) == (b"served", {"eth:*"}, "ali", 0)
    assert time.timers[0][0] == 0.001, "to the millisecond, not at the next look"


@pytest.mark.parametrize("order", list(itertools.permutations(["join", "look", "tick", "permissions", "learn"])))
def test_an_ended_token_is_ended_in_any_order_of_events(order: tuple[str, ...]) -> None:
    time, user = Time(), User()
    one = session(time)
    heads = one.heads
    heads.learn(b"head\r\n\r\n", 0)
    time.left_s = 0.0
    steps: dict[str, Callable[[], object]] = {
        "join": lambda: one.join(user),
        "look": one.check,
        "tick": time.tick,
        "permissions": lambda: one.permissions,
        "learn": lambda: one.heads.learn(b"other\r\n\r\n", 0),
    }
    steps[order[0]]()
    for name in order[1:]:
        steps[name]()
        if name != "learn" or order[0] != "learn":
            assert one.handle(b"") == b"refused"
    assert (one.is_trusted, one.permissions, user.told) == (False, frozenset(), 1)
    assert not one.heads.sizes, "nothing is learned from a token that has ended"


def test_an_ended_session_does_not_begin_again() -> None:
    time = Time()
    one = session(time)
    time.left_s = 0.0
    assert not one.check()
    time.left_s = 50.0
    assert not one.check()
    assert one.handle(b"") == b"refused"


def test_a_session_that_begins_too_late_never_begins() -> None:
    time = Time()
    time.left_s = 0.0
    one = session(time)
    assert not one.is_trusted
    assert one.handle(b"") == b"refused"
    assert not time.timers


def test_a_connection_that_left_is_not_notified() -> None:
    time, user = Time(), User()
    one = session(time)
    one.join(user)
    one.leave(user)
    one.leave(user)
    time.left_s = 0.0
    time.tick()
    assert user.told == 0


def test_a_timer_keeps_no_session_alive() -> None:
    time = Time()
    found = weakref.ref(session(time))
    gc.collect()
    assert found() is None
    time.tick()
    assert not time.timers


def test_the_end_comes_by_itself_on_a_real_loop() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        end, user = loop.time() + 0.05, User()
        one = Session(CLAIMS, lambda claims: end - loop.time(), serve, refuse, loop)
        one.join(user)
        await user.received.wait()
        assert one.handle(b"") == b"refused"

    asyncio.run(asyncio.wait_for(story(), 10))


def test_a_session_without_a_token_never_ends() -> None:
    user, one = User(), UnauthenticatedSession(refuse)
    one.join(user)
    one.leave(user)
    one.heads.learn(b"head\r\n\r\n", 0)
    assert (user.told, one.handle(b""), one.permissions, one.heads.sizes) == (0, b"refused", frozenset(), {})
