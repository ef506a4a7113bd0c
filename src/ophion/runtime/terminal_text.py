"""Escapes untrusted text for terminals and logs: control characters and terminal escapes become visible."""

from __future__ import annotations


def escape_line(text: str) -> str:
    """Return the text as one printable line.

    Newlines, terminal escapes, C1 controls, direction overrides and lone surrogates become `\\n`, `\\x1b`, `\\u202e`
    and so on. Use it for all text from a peer, a contract, a remote node or a file.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def escape_text(text: str) -> str:
    """Escape a text, but keep its line feeds and tabs."""
    return text if text.isprintable() else "\n".join(map(_escape_but_tabs, text.split("\n")))


def escape_lines(text: str, indent: str = "    ") -> str:
    """Escape each line of a longer text, such as a traceback. Indented lines do not look like log records."""
    return "\n".join(indent + escape_line(line.expandtabs(4)) for line in text.split("\n"))


def _escape_but_tabs(line: str) -> str:
    return "\t".join(map(escape_line, line.split("\t")))


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
