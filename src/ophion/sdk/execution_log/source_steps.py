"""Steps through the source of a traced transaction, for the web interface.

A step is the first instruction of a visit to a source line. Its values (stack, memory, storage) are traced when the
user opens the step, so the list of steps stays small even for a long transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ophion.runtime.terminal_text import escape_line, escape_text
from ophion.sdk.execution_log.contract_index import CompiledContract
from ophion.sdk.source_map import SourceFile, decode, instructions, is_declaration

MAX_STEPS = 20_000
_MAX_SOURCE_BYTES = 1024 * 1024
_CALLS = frozenset(("CALL", "CALLCODE", "DELEGATECALL", "STATICCALL", "CREATE", "CREATE2"))

ContractOf = Callable[[Mapping[str, Any]], CompiledContract | None]
"""Returns the contract whose code runs in a frame of the call tracer."""


def source_steps(
    rows: Sequence[Mapping[str, Any]], frame: Mapping[str, Any], contract_of: ContractOf
) -> dict[str, Any]:
    """Return the steps of struct log rows, and the source files that they visit.

    `frame` is the result of the call tracer for the same transaction.
    """
    sources = _Sources()
    stack = [_Frame(frame, contract_of, sources)]
    steps: list[dict[str, Any]] = []
    last: object = None
    is_call = False
    for position, row in enumerate(rows):
        depth = row["depth"]
        if is_call and depth <= len(stack):
            stack[-1].take_call()  # skip the frame of a precompiled contract, which has no struct log rows
        elif depth > len(stack):
            stack.append(stack[-1].next_frame(contract_of, sources))
        del stack[depth:]
        current = stack[-1]
        is_call = row["op"] in _CALLS and row.get("error") is None
        place = current.places.get(row["pc"])
        if place is None or (current.number, *place) == last:
            continue
        last = (current.number, *place)
        if len(steps) == MAX_STEPS:
            return {"files": sources.shown, "steps": steps, "isTruncated": True}
        steps.append(
            {
                "position": position,
                "depth": depth,
                "contract": escape_line(current.name),
                "file": place[0],
                "line": place[1],
                "op": row["op"],
                "gas": row["gas"],
            }
        )
    return {"files": sources.shown, "steps": steps, "isTruncated": False}


class _Sources:
    """Source files in the order in which steps visit them, and the source position of each instruction."""

    def __init__(self) -> None:
        self.shown: list[dict[str, str]] = []
        self.frames = 0
        self._numbers: dict[str, int] = {}
        self._places: dict[int, tuple[CompiledContract, dict[int, tuple[int, int]]]] = {}

    def places(self, contract: CompiledContract | None) -> dict[int, tuple[int, int]]:
        """Return file and line of each program counter."""
        if contract is None or not contract.source_map:
            return {}
        known = self._places.get(id(contract))
        if known is None:
            known = self._places[id(contract)] = (contract, self._read(contract))
        return known[1]

    def _read(self, contract: CompiledContract) -> dict[int, tuple[int, int]]:
        files: dict[int, SourceFile | None] = {}
        places: dict[int, tuple[int, int]] = {}
        try:
            fragments = decode(contract.source_map)
        except ValueError:
            return {}  # the source map cannot be read
        for (pc, _), fragment in zip(instructions(contract.runtime), fragments, strict=False):
            if fragment.file not in files:
                files[fragment.file] = contract.sources(fragment.file) if fragment.file >= 0 else None
            file = files[fragment.file]
            if file is None or not 0 <= fragment.start < len(file.content) <= _MAX_SOURCE_BYTES:
                continue
            text = file.content[fragment.start : fragment.start + fragment.length].decode(errors="replace")
            if not is_declaration(text):
                places[pc] = (self._number(file), file.number_at(fragment.start))
        return places

    def _number(self, file: SourceFile) -> int:
        if file.path not in self._numbers:
            self._numbers[file.path] = len(self.shown)
            self.shown.append(
                {"path": escape_line(file.path), "text": escape_text(file.content.decode(errors="replace"))}
            )
        return self._numbers[file.path]


class _Frame:
    """A frame of the call stack at the current struct log row."""

    def __init__(self, frame: Mapping[str, Any], contract_of: ContractOf, sources: _Sources) -> None:
        contract = contract_of(frame)
        self.number = sources.frames
        sources.frames += 1
        self.name = "" if contract is None else contract.name
        # the source map of a contract covers its deployed code, not its constructor
        is_creation = str(frame.get("type")).startswith("CREATE")
        self.places = {} if is_creation else sources.places(contract)
        self._calls: Sequence[Mapping[str, Any]] = frame.get("calls") or ()
        self._taken = 0

    def take_call(self) -> Mapping[str, Any]:
        """Return the next call that this frame has made; empty if the tracer has recorded no further call."""
        self._taken += 1
        return self._calls[self._taken - 1] if self._taken <= len(self._calls) else {}

    def next_frame(self, contract_of: ContractOf, sources: _Sources) -> _Frame:
        return _Frame(self.take_call(), contract_of, sources)
