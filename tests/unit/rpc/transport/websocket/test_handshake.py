"""Tests valid handshakes, and many kinds of other request heads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.messages import Response
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.websocket.handshake import Handshake

LINES = {
    "host": "Host: localhost",
    "upgrade": "Upgrade: websocket",
    "connection": "Connection: keep-alive, Upgrade",
    "key": "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "version": "Sec-WebSocket-Version: 13",
}
HOSTS = HostList(["localhost"])


def head(first: str = "GET /chat HTTP/1.1", extra: str | None = None, **changed: str | None) -> bytes:
    lines = [first, *(line for line in {**LINES, **changed}.values() if line is not None)]
    return "\r\n".join([*lines, *([] if extra is None else [extra]), "", ""]).encode()


def status(data: bytes) -> int | None:
    found = Handshake().feed(data)
    return found.status if isinstance(found, Response) else None


def test_the_example_of_the_standard() -> None:
    handshake = Handshake()
    assert handshake.feed(head() + b"frames") == len(head())
    assert handshake.refusal(HOSTS, OriginList(())) is None
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in handshake.answer()


@given(st.lists(st.integers(1, 40), max_size=30))
def test_a_head_may_arrive_in_any_pieces(sizes: list[int]) -> None:
    handshake, data = Handshake(), head()
    for size in sizes:
        piece, data = data[:size], data[size:]
        if data and piece:
            assert handshake.feed(piece) is None
        else:
            data = piece + data
            break
    assert handshake.feed(data) == len(data)


@pytest.mark.parametrize(
    "data",
    [
        head("POST /chat HTTP/1.1"),
        head("GET /chat HTTP/1.0"),
        head(upgrade=None),
        head(upgrade="Upgrade: h2c"),
        head(connection=None),
        head(connection="Connection: close"),
        head(key=None),
        head(key="Sec-WebSocket-Key: dGhlIHNhbXBsZQ=="),
        head(key="Sec-WebSocket-Key: ?"),
        head(extra="Host: other"),
        head(extra="Origin: a\r\nOrigin: b"),
        head(extra="Authorization: a\r\nAuthorization: b"),
        head(extra="Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
        head(extra="Content-Length: 5"),
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_anything_else_is_no_handshake(data: bytes) -> None:
    assert status(data) == 400


def test_another_version_is_refused_with_the_supported_one() -> None:
    found = Handshake().feed(head(version="Sec-WebSocket-Version: 8"))
    assert isinstance(found, Response)
    assert (found.status, found.headers) == (426, b"Sec-WebSocket-Version: 13\r\n")


def test_a_head_has_an_end() -> None:
    handshake = Handshake()
    assert handshake.feed(b"GET / HTTP/1.1\r\nX: ") is None
    found = [handshake.feed(b"y" * 10_000) for _ in range(7)][-1]
    assert isinstance(found, Response)
    assert found.status == 431


def test_hosts_and_pages() -> None:
    def refusal(*origins: str, **changed: str) -> int | None:
        handshake = Handshake()
        data = head(**changed)
        assert handshake.feed(data) == len(data)
        found = handshake.refusal(HOSTS, OriginList(origins))
        return None if found is None else found.status

    page = "Origin: https://page.example"
    assert refusal() is None, "a program"
    assert refusal(extra=page) == 403
    assert refusal("https://other.example", extra=page) == 403
    assert refusal("https://page.example", extra=page) is None
    assert refusal("*", host="Host: evil.example", extra=page) == 403


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    handshake = Handshake()
    handshake.feed(data)
    handshake.feed(data)
    handshake.close()
    assert isinstance(handshake.feed(data), Response)


def test_a_head_has_few_headers_and_short_lists() -> None:
    assert status(head(extra="\r\n".join(f"X-{number}: y" for number in range(200)))) is None
    assert status(head(extra="\r\n".join(f"X-{number}: y" for number in range(2000)))) == 431
    assert status(head(connection="Connection: Upgrade" + "," * 50_000)) == 431
    assert status(head(extra="\r\n".join(["Upgrade: x"] * 200) + "\r\nUpgrade:" + "y" * 4096)) == 431


def test_nothing_of_a_head_is_kept_when_it_has_been_used() -> None:
    handshake = Handshake()
    data = head(extra="X: " + "y" * 1000)
    assert handshake.feed(data[:-4]) is None
    assert handshake.held_bytes == len(data) - 4
    assert handshake.feed(data[-4:]) == 4
    assert handshake.held_bytes == 0
    handshake.close()
    assert handshake.headers == {}
