"""Tests the query page on the GraphQL port."""

from __future__ import annotations

import re

from ophion.graphql.query_editor import PAGE_PATH, page_file


def text_of(path: bytes) -> str:
    found = page_file(path, {})
    assert found is not None, path
    return b"".join(bytes(piece) for piece in found.body).decode()


def test_every_file_the_page_names_is_served() -> None:
    named = re.findall(r'(?:src|href)="(/[^"]+)"', text_of(PAGE_PATH))
    assert len(named) > 3
    for name in named:
        assert text_of(name.encode())


def test_the_page_may_talk_to_its_own_host_alone() -> None:
    found = page_file(PAGE_PATH, {})
    assert found is not None
    assert b"default-src 'none'" in found.headers
    assert b"Vary: Accept" in found.headers


def test_nothing_else_lies_below_its_path() -> None:
    for path in (
        b"/graphql/uix",
        b"/graphql/ui/../page.css",
        b"/graphql/ui/no.js",
        b"/page.css",
        b"/graphql/ui/block/1",
    ):
        assert page_file(path, {}) is None


def test_what_a_browser_has_already_is_not_sent_again() -> None:
    found = page_file(PAGE_PATH, {})
    assert found is not None
    tag = re.search(rb'ETag: ("[^"]+")', found.headers)
    assert tag is not None
    again = page_file(PAGE_PATH, {b"if-none-match": tag.group(1)})
    assert again is not None
    assert (again.status, again.body) == (304, (b"",))
