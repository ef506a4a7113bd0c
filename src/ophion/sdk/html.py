"""HTML of the objects of a chain, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def table(title: str, rows: Mapping[str, object]) -> str:
    """Return an HTML table of names and values."""
    lines = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left;font-family:monospace'>{escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table><caption style='text-align:left'>{escape(title)}</caption>{lines}</table>"


def preformatted(text: str) -> str:
    """Return HTML that shows a text with its line breaks."""
    return f"<pre>{escape(text)}</pre>"


def call_tree(line: str, below: str, is_failed: bool) -> str:
    """Return a call as an expandable line of HTML; `below` is the HTML of its calls and events."""
    color = "color:#b00020;" if is_failed else ""
    text = f"<span style='font-family:monospace;{color}'>{escape(line)}</span>"
    if not below:
        return f"<div style='margin-left:1.2em'>{text}</div>"
    return f"<details open style='margin-left:1.2em'><summary>{text}</summary>{below}</details>"
