"""`SourceMap`: the source of each instruction of a contract, from the source map of its compiler."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Final

from msgspec import Struct

_JUMPI: Final = 0x57
_PUSH1: Final = 0x60
_PUSH32: Final = 0x7F
_BRANCH = re.compile(r"(if|require|assert|while|for)\b")
_DECLARATION = re.compile(r"(abstract|contract|library|interface|function|constructor|modifier|receive|fallback)\b")


class Fragment(Struct, frozen=True):
    """Part of a source file."""

    start: int
    length: int
    file: int


class SourceMap:
    """Lines and branches of the instructions of one contract, in its own source file."""

    def __init__(self, runtime: bytes, source_map: str, source: str) -> None:
        """`source_map` is compressed as Solidity and Vyper write it: `start:length:file:jump;...`."""
        self._source = source.encode()
        self._line_starts = [0, *(match.end() for match in re.finditer(b"\n", self._source))]
        fragments = decode(source_map)
        own = _most_common([one.file for one in fragments])
        self.lines: dict[int, int] = {}
        """Line of each program counter that belongs to a statement."""
        self.branches: dict[int, int] = {}
        """Line of each program counter of a conditional jump that stands in the source."""
        for (pc, opcode), fragment in zip(instructions(runtime), fragments, strict=False):
            if fragment.file != own or not 0 <= fragment.start < len(self._source):
                continue
            text = self._source[fragment.start : fragment.start + fragment.length].decode(errors="replace")
            if _DECLARATION.match(text):
                continue
            line = bisect_right(self._line_starts, fragment.start)
            if opcode == _JUMPI and _BRANCH.match(text):
                self.branches[pc] = line
            if "\n" not in text.strip() or _BRANCH.match(text):
                self.lines[pc] = line


def decode(text: str) -> list[Fragment]:
    """Decode a compressed source map: an empty field repeats that of the instruction before."""
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
