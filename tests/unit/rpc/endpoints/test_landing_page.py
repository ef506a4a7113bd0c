"""Tests the landing page for browsers."""

from __future__ import annotations

import pytest

from ophion.rpc.endpoints.landing_page import page
from ophion.rpc.services.context import Endpoint
from ophion.rpc.transport.http.messages import Request

BROWSER = b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def asked(accept: bytes | None, host: bytes = b"localhost:8545") -> Request:
    headers = {b"host": host} | ({} if accept is None else {b"accept": accept})
    return Request(b"GET", b"/", b"", headers, b"")


@pytest.mark.parametrize(
    ("accept", "wants"),
    [(None, False), (b"*/*", False), (b"application/json", False), (BROWSER, True), (b"Text/HTML", True)],
)
def test_only_browsers_want_a_page(accept: bytes | None, wants: bool) -> None:
    assert asked(accept).wants_html is wants


def test_the_page_leads_to_what_else_there_is() -> None:
    served = {"graphQL": Endpoint("0.0.0.0", 8547), "ws": Endpoint("127.0.0.1", 8546)}
    response = page(asked(BROWSER, b"node.example:8545"), served)
    text = response.body[0].decode()  # type: ignore[union-attr]
    assert (response.status, response.content_type) == (200, b"text/html; charset=utf-8")
    assert '<a href="http://node.example:8547/graphql">' in text
    assert "ws://node.example:8546" in text
    assert "docs/rpc" in text
    assert b"default-src 'none'" in response.headers


def test_services_that_are_off_are_not_named_and_hosts_are_text() -> None:
    text = page(asked(BROWSER, b'"><script>'), {"graphQL": Endpoint("::", 1)}).body[0].decode()  # type: ignore[union-attr]
    assert "<script>" not in text
    assert "ws://" not in text
    assert "graphql" not in page(asked(BROWSER), {}).body[0].decode()  # type: ignore[union-attr]
