"""CONTRIBUTING.md names files and functions that exist."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT

TEXT = (ROOT / "CONTRIBUTING.md").read_text()
WALKS = re.findall(r"^## Your first change: (.+?)\n(.*?)(?=^## )", TEXT, re.MULTILINE | re.DOTALL)
PATH = re.compile(r"`((?:src|tests|docs|native)/[\w./-]+)`")
NAME = re.compile(r"`([A-Za-z_]\w+)`")
ELSEWHERE = {"make", "ophion", "InvalidHeader"}


def test_there_are_three_walks() -> None:
    assert [title for title, _ in WALKS] == ["add an RPC method", "add an option", "add a consensus rule"]


@pytest.mark.parametrize("path", sorted(set(PATH.findall(TEXT))))
def test_every_named_file_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize(("title", "walk"), WALKS, ids=[title for title, _ in WALKS])
def test_every_named_function_is_in_a_named_file(title: str, walk: str) -> None:
    files = [ROOT / path for path in PATH.findall(walk)]
    sources = "\n".join(file.read_text() for file in files if file.suffix == ".py")
    missing = [name for name in set(NAME.findall(walk)) - ELSEWHERE if not re.search(rf"\b{name}\b", sources)]
    assert missing == []
