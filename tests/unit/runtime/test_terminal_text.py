"""Tests untrusted text on terminals and in logs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.runtime.terminal_text import escape_line, escape_lines, escape_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ünïcode, 漢字 🎉", "plain text, ünïcode, 漢字 🎉"),
        ("two\nlines\r\n", r"two\nlines\r\n"),
        ("\x1b[2J\x1b]0;title\x07", r"\x1b[2J\x1b]0;title\x07"),
        ("\x9b31m del\x7f nul\x00", r"\x9b31m del\x7f nul\x00"),
        ("\u202eevil\u2028next", r"\u202eevil\u2028next"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
    ],
)
def test_control_characters_become_visible(text: str, shown: str) -> None:
    assert escape_line(text) == shown


@given(st.text())
def test_any_text_becomes_one_printable_line(text: str) -> None:
    assert escape_line(text).isprintable()


def test_lines_of_a_longer_text_are_indented_and_escaped() -> None:
    assert escape_lines("first\n\tsecond\x1b[31m") == "    first\n        second\\x1b[31m"


def test_a_text_keeps_its_lines_and_tabs() -> None:
    assert escape_text("first\n\tsecond\x1b[31m\r") == "first\n\tsecond\\x1b[31m\\r"
