"""Source maps of solc: from a position in deployed code to a line of source."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from msgspec import Struct

_PUSH1, _PUSH32 = 0x60, 0x7F


class SourceLine(Struct, frozen=True):
    """A line of a source file."""

    path: str
    line: int
    """Counted from 1."""
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class SourceFile:
    """A source file with the offsets of its lines. Source maps count bytes."""

    def __init__(self, path: str, content: bytes) -> None:
        self.path = path
        self._content = content

    @cached_property
    def _starts(self) -> list[int]:
        starts, at = [0], self._content.find(b"\n")
        while at >= 0:
            starts.append(at + 1)
            at = self._content.find(b"\n", at + 1)
        return starts

    def line_at(self, offset: int) -> SourceLine:
        """Return the line with this byte."""
        number = bisect_right(self._starts, offset)
        start = self._starts[number - 1]
        end = self._content.find(b"\n", start)
        text = self._content[start : None if end < 0 else end].decode("utf-8", "replace").strip()
        return SourceLine(self.path, number, text)


def location_at(source_map: str, code: bytes, position: int) -> tuple[int, int] | None:
    """Return (offset, file id) of the source of the instruction at `position`; None if it has no source."""
    wanted = _instruction_at(code, position)
    if wanted is None:
        return None
    start, file = "", ""
    entries = source_map.split(";")
    if wanted >= len(entries):
        return None
    for entry in entries[: wanted + 1]:
        # an empty field has the value of the entry before
        fields = entry.split(":")
        start = fields[0] or start
        file = (fields[2] if len(fields) > 2 else "") or file
    if not start.isdigit() or not file.isdigit():
        return None
    return int(start), int(file)


def _instruction_at(code: bytes, position: int) -> int | None:
    """Return the number of the instruction at a position of the code."""
    at = number = 0
    while at < position:
        opcode = code[at] if at < len(code) else 0
        at += opcode - _PUSH1 + 2 if _PUSH1 <= opcode <= _PUSH32 else 1
        number += 1
    return number if at == position and position < len(code) else None
