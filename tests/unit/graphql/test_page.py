"""The files of the query page."""

from __future__ import annotations

import re

from ophion.graphql.page import PAGE_FILES


def test_the_page_takes_nothing_from_any_other_host() -> None:
    for path, response in PAGE_FILES.items():
        text = b"".join(response.body).decode()
        assert not re.search(r"(?:https?:)?//[a-z0-9-]+\.[a-z]", text), path
        assert b"default-src 'none'" in response.headers


def test_every_file_the_page_names_is_served() -> None:
    page = b"".join(PAGE_FILES[b"/graphql/ui"].body).decode()
    named = re.findall(r'(?:src|href)="(/[^"]+)"', page)
    assert named
    assert all(name.encode() in PAGE_FILES for name in named)


def test_every_element_the_script_looks_for_exists() -> None:
    page = b"".join(PAGE_FILES[b"/graphql/ui"].body).decode()
    script = b"".join(PAGE_FILES[b"/graphql/ui/page.js"].body).decode()
    for name in re.findall(r'byId\("(\w+)"\)', script):
        assert f'id="{name}"' in page
