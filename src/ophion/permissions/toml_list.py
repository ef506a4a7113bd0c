"""Edits one list of strings inside a TOML file without changing other parts of the file.

An operator's file has comments, an order and other keys, so it is not rewritten from parsed data. The list is located
in the text, and entries are cut out or inserted. The caller parses the result before it is written (`allow_list_file`).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct

_TOKEN: Final = re.compile(
    r"""
    (?P<text>\"{3}(?:[^"\\]|\\.|\"{1,2}(?!\"))*+\"{3,5} | '{3}(?:[^']|'{1,2}(?!'))*+'{3,5}
           | "(?:[^"\\\n]|\\.)*+" | '[^'\n]*+')
    | (?P<comment>\#[^\n]*+)
    | (?P<space>[ \t\r]++)
    | (?P<line>\n)
    | (?P<sign>[\[\]{}=,])
    | (?P<bare>[^\s\[\]{}=,\#"']++)
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANK: Final = re.compile(r"[ \t]*(?:#[^\n]*)?\r?")


class Entry(Struct, frozen=True):
    """One string of a TOML list, and its position in the text of the file."""

    value: str
    start: int
    end: int
    comma: int | None
    """Position of the comma after the entry, if any."""


class TomlList(Struct, frozen=True):
    """A list at the top level of a TOML text."""

    text: str
    key: str
    opening: int
    """Position after the opening bracket of the list."""
    closing: int
    """Position of the closing bracket of the list."""
    entries: tuple[Entry, ...]

    def line_of(self, entry: Entry) -> int:
        """Return the line number of an entry in the file, counted from 1."""
        return self.text.count("\n", 0, entry.start) + 1

    def with_added(self, values: Sequence[str]) -> str:
        """Return the text with more entries at the end, in the layout of the existing entries."""
        text, quoted = self.text, [json.dumps(value, ensure_ascii=False) for value in values]
        if not self.entries:
            return text[: self.opening] + ",".join(quoted) + text[self.opening :]
        last = self.entries[-1]
        line_end = text.find("\n", last.end)
        if not 0 <= line_end < self.closing:
            between = ", " if len(self.entries) > 1 and text[self._gap()].startswith(" ") else ","
            return text[: last.end] + "".join(between + one for one in quoted) + text[last.end :]
        # the list has one entry per line: insert after the line of the last entry, so that this line keeps its comment
        start = text.rfind("\n", 0, last.start) + 1
        indent = text[start : last.start] if not text[start : last.start].strip() else "  "
        comma = "," if last.comma is None else ""
        rest = text[last.end : line_end]
        lines = ",".join(f"\n{indent}{one}" for one in quoted) + ("" if last.comma is None else ",")
        if last.comma is not None and last.comma > line_end:
            # in this list, each comma stands at the beginning of the next line
            return text[: last.end] + "," + ",".join(quoted) + text[last.end :]
        return text[: last.end] + comma + rest + lines + text[line_end:]

    def without(self, is_removed: Callable[[str], bool]) -> str:
        """Return the text without some entries. If an entry is alone on its line, the line and its comment are
        removed too.
        """
        remaining = [entry for entry in self.entries if not is_removed(entry.value)]
        cuts = [self._cut(entry) for entry in self.entries if is_removed(entry.value)]
        if remaining and remaining[-1].comma is not None and self.entries[-1].comma is None:
            end = remaining[-1].comma + 1
            while self.text[end] == " ":
                end += 1
            cuts.append((remaining[-1].comma, end if self.text[end] in "\"'" else remaining[-1].comma + 1))
        text, at, parts = self.text, 0, []
        for start, end in sorted(cuts):
            parts.append(text[at:start])
            at = max(at, end)
        return "".join(parts) + text[at:]

    def _gap(self) -> slice:
        return slice((self.entries[0].comma or 0) + 1, self.entries[1].start)

    def _cut(self, entry: Entry) -> tuple[int, int]:
        text = self.text
        end = entry.end if entry.comma is None else entry.comma + 1
        line_start, line_end = text.rfind("\n", 0, entry.start) + 1, text.find("\n", end)
        is_alone = not text[line_start : entry.start].strip() and line_start > self.opening
        if is_alone and 0 <= line_end < self.closing and _BLANK.fullmatch(text, end, line_end):
            return line_start, line_end + 1
        while end < self.closing and text[end] == " ":
            end += 1
        return entry.start, end


def find_list(text: str, keys: Collection[str]) -> TomlList | None:
    """Find the first top-level list under one of these keys. `text` must be valid TOML with a list of strings."""
    statement: list[str] = []
    tokens = ((match.lastgroup or "", match) for match in _TOKEN.finditer(text))
    depth = 0
    for kind, match in tokens:
        token = match.group()
        if kind in ("space", "comment"):
            continue
        if kind == "line":
            if not depth:
                statement = []
        elif kind == "sign" and token in "[{":
            if not statement and not depth:
                return None  # a TOML table begins here, so the top level has ended
            if statement[1:] == ["="] and not depth and _key(statement[0]) in keys:
                return _read(text, _key(statement[0]), match.end(), tokens)
            depth += 1
        elif kind == "sign" and token in "]}":
            depth -= 1
        elif not depth and len(statement) < 3:
            statement.append(token)
    return None


def _read(text: str, key: str, opening: int, tokens: Iterator[tuple[str, re.Match[str]]]) -> TomlList:
    entries: list[Entry] = []
    for kind, match in tokens:
        token = match.group()
        if kind == "text":
            entries.append(Entry(_value(token), match.start(), match.end(), None))
        elif token == "," and entries:
            last = entries[-1]
            entries[-1] = Entry(last.value, last.start, last.end, match.start())
        elif token == "]":
            return TomlList(text, key, opening, match.start(), tuple(entries))
    raise ValueError(f"the list {key} has no end")


def _key(token: str) -> str:
    return token[1:-1] if token[:1] in "\"'" else token


def _value(token: str) -> str:
    """Return the value of a TOML string. Only strings with escapes need the parser."""
    if "\\" not in token and not token.startswith(('"""', "'''")):
        return token[1:-1]
    return str(tomllib.loads(f"v={token}")["v"])
