"""Tests the host allow-list and origins."""

from __future__ import annotations

import pytest

from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.origins import OriginList


@pytest.mark.parametrize("header", [b"localhost", b"LocalHost:8545", b"127.0.0.1:1", b"localhost:65535"])
def test_listed_hosts_are_allowed_with_any_port_and_case(header: bytes) -> None:
    assert HostList(["localhost", "127.0.0.1"]).allows(header)


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"other",
        b"localhost:",
        b"localhost:123456",
        b"localhost:80x",
        b"localhost:1:2",
        b":80",
        b"\xff",
        b"\xa0localhost",
    ],
)
def test_other_and_malformed_hosts_are_not(header: bytes | None) -> None:
    assert not HostList(["localhost", "127.0.0.1"]).allows(header)


@pytest.mark.parametrize("entry", ["::1", "[::1]", "FE80::1"])
def test_an_address_of_ipv6_is_allowed_where_it_is_listed(entry: str) -> None:
    address = entry.strip("[]").lower().encode()
    hosts = HostList(["localhost", entry])
    for welcome in (b"[%b]" % address, b"[%b]:8545" % address, b"localhost:8545"):
        assert hosts.allows(welcome)
    for other in (address, b"[%b]:" % address, b"[%b]x" % address, b"[%b" % address, b"[::2]", b"[]", b"[::1]]"):
        assert not hosts.allows(other)
    assert not HostList(["localhost"]).allows(b"[::1]:8545")


@pytest.mark.parametrize("wildcard", ["*", "all"])
def test_a_wildcard_allows_everything(wildcard: str) -> None:
    assert HostList([wildcard]).allows(None)
    assert OriginList([wildcard]).allows(b"http://anything")


def test_none_allows_nothing() -> None:
    assert not HostList(["none"]).allows(b"none")
    assert not OriginList(["none"]).allows(b"none")
    assert not OriginList([]).allows(b"http://a")


def test_origins_are_meant_as_they_stand() -> None:
    origins = OriginList(["http://a.example", "HTTPS://B.example:8080/", "(a+)+$", "http://x|http://y"])
    for welcome in (b"http://a.example", b"https://b.example:8080", b"HTTP://A.EXAMPLE", b"(a+)+$"):
        assert origins.allows(welcome)
    for other in (
        b"http://aXexample",
        b"http://a.example.evil",
        b"http://a.example:80",
        b"http://x",
        b"",
        b"null",
        b"\xff",
    ):
        assert not origins.allows(other)


@pytest.mark.parametrize(
    ("entry", "origin", "is_welcome"),
    [
        ("http://localhost:*", b"http://localhost:3000", True),
        ("http://localhost:*", b"http://localhost", True),
        ("http://localhost:*", b"http://localhost:123456", False),
        ("http://localhost:*", b"http://localhost.evil:80", False),
        ("http://localhost:*", b"https://localhost:3000", False),
        ("http://localhost:*", b"http://localhost:80@evil", False),
        ("https://*.example.org", b"https://a.example.org", True),
        ("https://*.example.org", b"https://a.b.example.org", True),
        ("https://*.example.org", b"https://example.org", False),
        ("https://*.example.org", b"https://evil/.example.org", False),
        ("https://*.example.org", b"https://axexample.org", False),
        ("chrome-extension://*", b"chrome-extension://abcdef", True),
        ("chrome-extension://*", b"chrome-extension://abc/def", False),
    ],
)
def test_a_star_stands_for_one_part(entry: str, origin: bytes, is_welcome: bool) -> None:
    assert OriginList([entry]).allows(origin) is is_welcome
