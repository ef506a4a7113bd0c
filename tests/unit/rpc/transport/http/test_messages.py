"""Tests heads of HTTP responses."""

from __future__ import annotations

import pytest

from ophion.rpc.transport.http.messages import Response, json_head, preflight, response_head


@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 5_000_000])
def test_the_head_of_an_answer_names_its_size(size: int) -> None:
    assert json_head(size) == (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % size
    )


def test_a_head_says_what_becomes_of_the_connection() -> None:
    assert b"Connection" not in response_head(Response(404), b"", True, False)
    assert b"Connection: keep-alive\r\n" in response_head(Response(404), b"", True, True)
    assert b"Connection: close\r\n" in response_head(Response(404), b"", False, True)


def test_a_head_has_reason_type_and_further_lines() -> None:
    head = response_head(Response(400, (b"ab", b"c"), b"text/plain", b"X: 1\r\n", b"Because"), b"Y: 2\r\n", True, False)
    assert head == (b"HTTP/1.1 400 Because\r\nContent-Type: text/plain\r\nContent-Length: 3\r\nX: 1\r\nY: 2\r\n\r\n")
    assert response_head(Response(418), b"", True, False).startswith(b"HTTP/1.1 418 I'm a Teapot\r\n")


def test_a_preflight_names_what_is_allowed() -> None:
    assert b"Access-Control-Allow-Methods: GET, POST, OPTIONS\r\n" in preflight().headers


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [
        (b"", b"*,content-type"),
        (b"content-type", b"*,content-type"),
        (b"content-type,x-request-id", b"*,content-type"),
        (b"authorization", b"*,content-type,authorization"),
        (b"Content-Type , Authorization", b"*,content-type,authorization"),
        (b"x-authorization", b"*,content-type"),
        (b"," * 60_000, b"*,content-type"),
    ],
)
def test_a_page_may_send_its_token(asked: bytes, allowed: bytes) -> None:
    """In Access-Control-Allow-Headers, `*` does not include Authorization. So the response lists Authorization
    (fetch.spec.whatwg.org, CORS-preflight fetch).
    """
    assert preflight(asked).headers.startswith(b"Access-Control-Allow-Headers: %b\r\n" % allowed)
