"""HTML of the objects of a chain, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape


def table(title: str, rows: Mapping[str, object]) -> str:
    """Return a table of names and values."""
    lines = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left;font-family:monospace'>{escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table><caption style='text-align:left'>{escape(title)}</caption>{lines}</table>"


def preformatted(text: str) -> str:
    """Return text with its line breaks."""
    return f"<pre>{escape(text)}</pre>"
