"""The proxy forwards some request headers and drops others."""

from __future__ import annotations

from ophion.gateway.proxy_headers import answer_lines, handshake, request_head, with_body

ASKED = {
    b"host": b"localhost:8080",
    b"origin": b"http://localhost:8080",
    b"connection": b"keep-alive, X-Mine",
    b"x-mine": b"1",
    b"transfer-encoding": b"chunked",
    b"content-length": b"2",
    b"expect": b"100-continue",
    b"te": b"trailers",
    b"upgrade": b"h2c",
    b"authorization": b"Bearer abc",
    b"content-type": b"application/json",
}


def test_only_what_is_meant_for_the_node_goes_on() -> None:
    head = request_head(b"POST", b"/", b"127.0.0.1:8545", ASKED)
    assert with_body(head, b"{}") == (
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1:8545\r\nauthorization: Bearer abc\r\ncontent-type: application/json\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    )


def test_a_handshake_keeps_what_belongs_to_the_socket() -> None:
    asked = {b"host": b"a", b"upgrade": b"websocket", b"connection": b"Upgrade", b"sec-websocket-key": b"k"}
    assert handshake(b"/", b"127.0.0.1:8546", asked) == (
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8546\r\nsec-websocket-key: k\r\n"
        b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    )


def test_answers_keep_their_headers_but_those_of_the_connection() -> None:
    headers = [
        (b"connection", b"close, x-hop"),
        (b"x-hop", b"1"),
        (b"content-length", b"5"),
        (b"content-type", b"text/plain"),
        (b"etag", b'"1"'),
        (b"set-cookie", b"a"),
        (b"set-cookie", b"b"),
    ]
    assert answer_lines(headers) == b'etag: "1"\r\nset-cookie: a\r\nset-cookie: b\r\n'
