"""Host allow-list and origins."""

from __future__ import annotations

import pytest

from ophion.rpc.transport.access import HostList, OriginList


@pytest.mark.parametrize("header", [b"localhost", b"LocalHost:8545", b"127.0.0.1:1", b"localhost:65535"])
def test_listed_hosts_are_allowed_with_any_port_and_case(header: bytes) -> None:
    assert HostList(["localhost", "127.0.0.1"]).allows(header)


@pytest.mark.parametrize(
    "header",
    [None, b"", b"other", b"localhost:", b"localhost:123456", b"localhost:80x", b"localhost:1:2", b":80", b"\xff"],
)
def test_other_and_malformed_hosts_are_not(header: bytes | None) -> None:
    assert not HostList(["localhost", "127.0.0.1"]).allows(header)


@pytest.mark.parametrize("wildcard", ["*", "all"])
def test_a_wildcard_allows_everything(wildcard: str) -> None:
    assert HostList([wildcard]).allows(None)
    assert OriginList([wildcard]).allows(b"http://anything")


def test_none_allows_nothing() -> None:
    assert not HostList(["none"]).allows(b"none")
    assert not OriginList(["none"]).allows(b"none")
    assert not OriginList([]).allows(b"http://a")


def test_origins_are_regular_expressions_that_match_in_full() -> None:
    origins = OriginList(["http://a", "https://.*\\.example"])
    assert origins.allows(b"http://a")
    assert origins.allows(b"https://x.example")
    assert not origins.allows(b"http://ab")
    assert not origins.allows(b"https://x.example.evil")
