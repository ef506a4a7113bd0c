"""Tests URLs of forked nodes."""

from __future__ import annotations

import pytest

from ophion.dev.fork.settings import ForkSettings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http://localhost:8545", ("http://localhost:8545", None)),
        ("http://localhost:8545@17", ("http://localhost:8545", 17)),
        ("https://user:word@host/path", ("https://user:word@host/path", None)),
        ("https://user:word@host/path@5", ("https://user:word@host/path", 5)),
    ],
)
def test_an_address_may_name_a_block(text: str, expected: tuple[str, int | None]) -> None:
    assert ForkSettings.split(text) == expected
