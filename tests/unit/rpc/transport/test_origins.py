"""Tests allowed origins."""

from __future__ import annotations

import pytest

from ophion.rpc.transport.origins import PageOrigins


@pytest.mark.parametrize(
    ("origin", "is_welcome"),
    [
        (b"http://127.0.0.1:8547", True),
        (b"http://localhost:8547", True),
        (b"http://Node.Example:8547", True),
        (b"https://app.example", True),
        (b"http://localhost:3000", False),
        (b"https://localhost:8547", False),
        (b"http://evil.example:8547", False),
        (b"null", False),
        (b"", False),
    ],
)
def test_configured_origins_and_the_own_page_are_welcome(origin: bytes, is_welcome: bool) -> None:
    origins = PageOrigins(["https://app.example"], ["localhost", "node.example"], lambda: 8547)
    assert origins.allows(origin) is is_welcome


def test_the_own_page_comes_as_the_service_speaks() -> None:
    secure = PageOrigins([], ["localhost"], lambda: 8547, is_encrypted=True)
    assert secure.allows(b"https://localhost:8547")
    assert not secure.allows(b"http://localhost:8547")
    assert PageOrigins([], ["localhost"], lambda: 443, is_encrypted=True).allows(b"https://localhost")
    assert PageOrigins([], ["localhost"], lambda: 80).allows(b"http://localhost")


def test_any_host_makes_no_other_page_an_own_one() -> None:
    origins = PageOrigins([], ["*"], lambda: 8547)
    assert origins.allows(b"http://localhost:8547")
    assert not origins.allows(b"http://*:8547")
    assert not origins.allows(b"http://evil.example:8547")


@pytest.mark.parametrize(
    ("hosts", "host", "origin", "is_welcome"),
    [
        (["localhost"], b"localhost:9000", b"http://localhost:9000", True),
        (["localhost"], b"localhost:9000", b"http://localhost:9001", False),
        (["localhost"], b"localhost:9000", b"https://localhost:9000", False),
        (["node.example"], b"Node.example", b"http://node.example", True),
        (["localhost"], b"evil.example", b"http://evil.example", False),
        (["*"], b"192.0.2.7:9000", b"http://192.0.2.7:9000", True),
        (["*"], b"[2001:db8::1]:9000", b"http://[2001:db8::1]:9000", True),
        (["*"], b"evil.example:8547", b"http://evil.example:8547", False),
        (["*"], None, b"http://", False),
    ],
)
def test_a_page_may_ask_where_it_came_from(
    hosts: list[str], host: bytes | None, origin: bytes, is_welcome: bool
) -> None:
    assert PageOrigins([], hosts, lambda: 8547).allows(origin, host) is is_welcome
