"""Tests the files of the web interface, by path."""

from __future__ import annotations

import re
from posixpath import dirname, join, normpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.web.service import PageFiles

FILES = PageFiles()


def text_of(path: str) -> str:
    found = FILES.answer(path, {})
    assert found is not None, path
    return found.body.decode()


def test_the_root_is_the_index() -> None:
    found = FILES.answer("/", {})
    assert found is not None
    assert found.status == 200
    assert dict(found.headers)["Content-Type"] == "text/html; charset=utf-8"
    assert "<title>Ophion</title>" in found.body.decode()


def test_every_file_is_guarded() -> None:
    for path in FILES.paths:
        found = FILES.answer(path, {})
        assert found is not None
        headers = dict(found.headers)
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_nothing_is_taken_from_any_other_host() -> None:
    for path in FILES.paths:
        found = re.findall(r"(?:https?:)?//[a-z0-9-]+\.[a-z]+", text_of(path))
        # the SVG namespace looks like a URL, but no browser requests it
        assert [one for one in found if one != "http://www.w"] == [], path


def test_every_file_that_is_named_is_there() -> None:
    for path in FILES.paths:
        text = text_of(path)
        named = re.findall(r'(?:from|import)\s*\(?"(\.[^"]+)"', text)
        if path.endswith("index.html"):
            named += re.findall(r'(?:src|href)="([^"#][^"]*)"', text)
        for name in named:
            assert normpath(join(dirname(path), name)) in FILES.paths, f"{path} names {name}"


def test_no_script_makes_elements_from_text() -> None:
    for path in FILES.paths:
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text_of(path)), path


def test_what_a_browser_has_already_is_not_sent_again() -> None:
    first = FILES.answer("/main.js", {})
    assert first is not None
    tag = dict(first.headers)["ETag"].encode()
    again = FILES.answer("/main.js", {b"if-none-match": b'"other", ' + tag})
    assert again is not None
    assert (again.status, again.body, again.headers) == (304, b"", first.headers)
    other = FILES.answer("/main.js", {b"if-none-match": b'"other"'})
    assert other == first


@pytest.mark.parametrize(
    ("path", "target"),
    [("/block/12", "../#/block/12"), ("/tx/0xab", "../#/tx/0xab"), ("/blocks", "./#/blocks")],
)
def test_plain_addresses_lead_to_views(path: str, target: str) -> None:
    found = FILES.answer(path, {})
    assert found is not None
    assert (found.status, dict(found.headers)["Location"]) == (302, target)


@pytest.mark.parametrize(
    "path",
    ["/../service.py", "/..%2fservice.py", "/lib", "/lib/", "//", "/service.py", "/files/main.js", "/block/a\r\nb", ""],
)
def test_nothing_else_is_there(path: str) -> None:
    assert FILES.answer(path, {}) is None


@given(st.text())
def test_any_path_gets_a_file_a_view_or_nothing(path: str) -> None:
    found = FILES.answer(path, {})
    if found is not None and found.status == 302:
        location = dict(found.headers)["Location"]
        assert re.fullmatch(r"(\.\./)*(\./)?#/[\w/]+", location)
        assert "\n" not in location
    else:
        assert found is None or path in FILES.paths
