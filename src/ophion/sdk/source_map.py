"""Source maps of Solidity and Vyper: from an instruction of deployed code to a line of source."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from typing import Final

from msgspec import Struct

_JUMPI: Final = 0x57
_PUSH1: Final = 0x60
_PUSH32: Final = 0x7F
_BRANCH = re.compile(r"(if|require|assert|while|for)\b")
_DECLARATION = re.compile(r"(abstract|contract|library|interface|function|constructor|modifier|receive|fallback)\b")


class Fragment(Struct, frozen=True):
    """Part of a source file to which a source map assigns an instruction."""

    start: int
    length: int
    file: int


class SourceLine(Struct, frozen=True):
    """A line of a source file."""

    path: str
    line: int
    """Line number, counted from 1."""
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class SourceFile:
    """A source file with the offsets of its lines. Source maps count bytes."""

    def __init__(self, path: str, content: bytes) -> None:
        self.path = path
        self.content = content

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer(b"\n", self.content))]

    def number_at(self, offset: int) -> int:
        """Return the number of the line that contains the byte at this offset."""
        return bisect_right(self._starts, offset)

    def line_at(self, offset: int) -> SourceLine:
        """Return the line that contains the byte at this offset."""
        number = self.number_at(offset)
        start = self._starts[number - 1]
        end = self.content.find(b"\n", start)
        text = self.content[start : None if end < 0 else end].decode("utf-8", "replace").strip()
        return SourceLine(self.path, number, text)


class SourceMap:
    """Lines and branches of the instructions of one contract, in its own source file."""

    def __init__(self, runtime: bytes, source_map: str, source: str) -> None:
        """Create the source map. `source_map` is compressed as Solidity and Vyper write it:
        `start:length:file:jump;...`.
        """
        file = SourceFile("", source.encode())
        fragments = decode(source_map)
        own = _most_common([one.file for one in fragments])
        self.lines: dict[int, int] = {}
        """Line of each instruction that belongs to a statement, by program counter."""
        self.branches: dict[int, int] = {}
        """Line of each conditional jump that belongs to a condition in the source, by program counter."""
        for (pc, opcode), fragment in zip(instructions(runtime), fragments, strict=False):
            if fragment.file != own or not 0 <= fragment.start < len(file.content):
                continue
            text = file.content[fragment.start : fragment.start + fragment.length].decode(errors="replace")
            if is_declaration(text):
                continue
            line = file.number_at(fragment.start)
            if opcode == _JUMPI and _BRANCH.match(text):
                self.branches[pc] = line
            if "\n" not in text.strip() or _BRANCH.match(text):
                self.lines[pc] = line


def is_declaration(text: str) -> bool:
    """Return whether a fragment is a whole declaration (a contract, a function). Source maps assign generated code to
    declarations.
    """
    return _DECLARATION.match(text) is not None


def location_at(source_map: str, code: bytes, position: int) -> tuple[int, int] | None:
    """Return (offset, file id) of the source of the instruction at `position`; None if there is no source."""
    counters = [pc for pc, _ in instructions(code)]
    try:
        found = decode(source_map)[counters.index(position)]
    except (IndexError, ValueError):
        # the position is after the code, inside of an instruction, or not covered by the source map
        return None
    return (found.start, found.file) if found.start >= 0 and found.file >= 0 else None


def decode(text: str) -> list[Fragment]:
    """Decode a compressed source map. An empty field repeats the field of the previous instruction."""
    found: list[Fragment] = []
    start, length, file = 0, 0, -1
    for item in text.split(";"):
        fields = item.split(":")
        if fields[0]:
            start = int(fields[0])
        if len(fields) > 1 and fields[1]:
            length = int(fields[1])
        if len(fields) > 2 and fields[2]:
            file = int(fields[2])
        found.append(Fragment(start, length, file))
    return found


def instructions(code: bytes) -> list[tuple[int, int]]:
    """Return program counter and opcode of each instruction."""
    found, pc = [], 0
    while pc < len(code):
        opcode = code[pc]
        found.append((pc, opcode))
        pc += 1 + (opcode - _PUSH1 + 1 if _PUSH1 <= opcode <= _PUSH32 else 0)
    return found


def _most_common(files: list[int]) -> int:
    known = [one for one in files if one >= 0]
    return max(set(known), key=known.count) if known else -1
