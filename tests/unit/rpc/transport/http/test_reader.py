"""Tests the parsing of HTTP requests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.messages import Request, Response
from ophion.rpc.transport.http.policy import HttpLimits, HttpPolicy
from ophion.rpc.transport.http.reader import RequestReader
from ophion.rpc.transport.origins import OriginList

HEAD = b"POST /path?a=1 HTTP/1.1\r\nHost: localhost\r\n"
MESSAGE = HEAD + b"Content-Length: 5\r\n\r\nhello"


class Nothing:
    plain = None

    def respond(self, request: Request) -> Response:
        return Response(404)

    def close(self) -> None:
        """Do nothing."""


class Reading:
    """A connection that records callbacks."""

    def __init__(self, **limits: int) -> None:
        self.is_ending = self.is_plain = False
        self.takes_upgrades = False
        self.told: list[Any] = []
        hosts, origins = HostList(["localhost"]), OriginList(["http://good"])
        policy = HttpPolicy(
            Nothing(),
            hosts,
            origins,
            HttpLimits(**limits),
            PlainHeads(),
            lambda opened: True,
            lambda closed: None,
        )
        self.reader = RequestReader(policy, self)

    def on_request(self) -> None:
        self.is_plain = self.reader.is_plain()
        self.told.append(self.reader.refusal or self.reader.request())

    def on_upgrade(self, rest: bytes) -> bool:
        if self.takes_upgrades:
            self.told.append(rest)
        return self.takes_upgrades

    def on_expectation(self) -> None:
        self.told.append("continue")

    def end_with(self, response: Response) -> None:
        self.is_ending = True
        self.told.append(response.status)


@given(st.lists(st.integers(0, 3 * len(MESSAGE)), max_size=12))
def test_it_does_not_matter_how_bytes_are_cut(cuts: list[int]) -> None:
    reading, data, places = Reading(), MESSAGE * 3, sorted(cuts)
    for start, end in zip([0, *places], [*places, len(MESSAGE * 3)], strict=True):
        if start < end:
            reading.reader.feed(data[start:end])
    expected = Request(b"POST", b"/path", b"a=1", {b"host": b"localhost", b"content-length": b"5"}, b"hello")
    assert reading.told == [expected] * 3
    assert not reading.reader.in_message


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"nonsense\r\n\r\n", [400]),
        (HEAD + b"Content-Length: 6\r\n\r\n", [413]),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\n123456789\r\n", [413]),
        (HEAD + b"X: " + b"y" * 200 + b"\r\n\r\n", [431]),
        (b"GET /" + b"y" * 200, [431]),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", [405]),
        (HEAD + b"Expect: tea\r\nContent-Length: 1\r\n\r\n", [417]),
        (HEAD + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n", ["continue"]),
    ],
)
def test_what_a_head_decides(data: bytes, told: list[object]) -> None:
    reading = Reading(max_body_bytes=5, max_head_bytes=150)
    reading.reader.feed(data)
    assert reading.told[:1] == told


@pytest.mark.parametrize("line", [b"Host: elsewhere", b"Host: localhost\r\nOrigin: http://evil"])
def test_refused_hosts_and_origins_are_reported_with_the_request(line: bytes) -> None:
    reading = Reading()
    reading.reader.feed(b"POST / HTTP/1.1\r\n" + line + b"\r\nContent-Length: 2\r\n\r\n{}")
    assert [refusal.status for refusal in reading.told] == [403]


def test_a_wish_for_another_protocol_is_ignored() -> None:
    reading = Reading()
    reading.reader.feed(HEAD + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nContent-Length: 5\r\n\r\nhello")
    assert [request.body for request in reading.told] == [b"hello"]


def test_a_wish_for_another_protocol_may_be_granted() -> None:
    reading = Reading()
    reading.takes_upgrades = True
    reading.reader.feed(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nframes")
    assert reading.told == [b"frames"]


@pytest.mark.parametrize(
    ("lines", "is_plain"),
    [
        (b"", True),
        (b"Connection: close\r\n", False),
        (b"Origin: http://good\r\n", False),
        (b"Authorization: Bearer x\r\n", True),
    ],
)
def test_which_heads_leave_nothing_to_decide(lines: bytes, is_plain: bool) -> None:
    reading = Reading()
    reading.reader.feed(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + lines + b"Content-Length: 2\r\n\r\n{}")
    assert reading.is_plain is is_plain


def test_what_comes_after_a_body_is_no_header() -> None:
    reading = Reading()
    lines = b"Host: evil\r\nOrigin: http://evil\r\nAuthorization: Bearer x\r\n"
    reading.reader.feed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + lines + b"\r\n")
    [request] = reading.told
    assert request.headers.keys() == {b"host", b"transfer-encoding"}


def test_nothing_of_a_request_is_kept_when_it_has_been_used() -> None:
    reading = Reading()
    reading.reader.feed(HEAD + b"X: " + b"y" * 1000 + b"\r\n")
    assert reading.reader.held_bytes > 1000
    reading.reader.feed(b"Content-Length: 5\r\n\r\nhello")
    assert reading.reader.held_bytes == 0
    assert reading.reader.headers == {}
    assert len(reading.told[0].headers) == 3


def test_no_piece_has_two_requests_in_it() -> None:
    """No piece contains two requests, because each request is answered at its end and later requests may have
    to wait.
    """
    reading = Reading()
    data = b"GET /path HTTP/1.1\r\nHost: localhost\r\n\r\n" * 40 + MESSAGE * 3 + b"\r\n" * 9
    position, seen = 0, 0
    while position < len(data):
        size = reading.reader.piece(data, position, position % 2 == 0)
        assert size > 0
        reading.reader.feed(data[position : position + size])
        position += size
        assert len(reading.told) - seen <= 1
        seen = len(reading.told)
    assert len(reading.told) == 43


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        (b"http://localhost:8545/", b"/", b""),
        (b"HTTPS://LOCALHOST/path?a=1", b"/path", b"a=1"),
        (b"http://localhost", b"/", b""),
        (b"http://localhost?a=http://b/c", b"/", b"a=http://b/c"),
        (b"*", b"*", b""),
    ],
)
def test_a_target_may_name_this_server(target: bytes, path: bytes, query: bytes) -> None:
    reading = Reading()
    reading.reader.feed(b"OPTIONS %b HTTP/1.1\r\nHost: localhost:8545\r\n\r\n" % target)
    (request,) = reading.told
    assert (request.path, request.query) == (path, query)


@pytest.mark.parametrize("target", [b"http://evil/", b"http://localhost@evil/", b"http:///", b"http://localhost./"])
def test_a_target_that_names_another_server_is_refused_as_its_host_is(target: bytes) -> None:
    reading = Reading()
    reading.reader.feed(b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % target)
    assert [refusal.status for refusal in reading.told] == [403]


def test_a_head_request_is_recognised() -> None:
    reading = Reading()
    reading.reader.feed(b"HEAD /path HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert reading.reader.is_bare
    reading.reader.feed(MESSAGE)
    assert not reading.reader.is_bare
