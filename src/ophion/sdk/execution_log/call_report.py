"""The call tree with contract names, gas and source lines: text for a terminal, members for the web interface."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ophion.runtime.terminal_text import escape_line
from ophion.sdk.call_tree import CONSOLE_ADDRESS, CallTree, shown_value
from ophion.sdk.console_log import console_text
from ophion.sdk.execution_log.contract_index import CompiledContract, ContractIndex
from ophion.sdk.source_map import SourceLine

_RED, _YELLOW, _DIM, _END = "\x1b[31m", "\x1b[33m", "\x1b[2m", "\x1b[0m"


class CallReport:
    """A traced call: the frames of the call tracer, and the contracts that run in them."""

    def __init__(self, frame: Mapping[str, Any], index: ContractIndex, code_of: Callable[[bytes], bytes]) -> None:
        self._frame = frame
        self._index = index
        self._code_of = code_of
        self._contracts: dict[bytes, CompiledContract | None] = {}
        for one in _frames(frame):
            if str(one.get("type")).startswith("CREATE"):
                self._contracts[_bytes(one.get("to"))] = index.created(_bytes(one.get("input")))

    @property
    def has_failed(self) -> bool:
        return self._frame.get("error") is not None

    @property
    def reason(self) -> str:
        """Reason of the failure: a decoded error, or the halt of the EVM."""
        return escape_line(self._reason(self._tree))

    @property
    def console(self) -> list[str]:
        """Lines that the call has written to the console."""
        texts = (console_text(_bytes(one.get("input"))) for one in _frames(self._frame) if _is_console(one))
        return [escape_line(line) for text in texts for line in text.split("\n")]

    def lines(self, is_coloured: bool) -> list[str]:
        """Return the tree, one call per line."""
        lines: list[str] = []
        self._draw(self._tree, self._frame, "", "", "", is_coloured, lines)
        return lines

    def members(self) -> dict[str, Any]:
        """Return the tree for the web interface: the content of `lines`, as members of nested objects."""
        return {**self._members(self._tree, self._frame), "isKnown": any(self._contracts.values())}

    def _members(self, call: CallTree, frame: Mapping[str, Any]) -> dict[str, Any]:
        is_console, line = _is_console(frame), self._line(frame)
        return {
            "kind": call.kind,
            "to": call.to or None,
            "name": escape_line(call.name),
            "arguments": [[escape_line(name), escape_line(shown_value(one))] for name, one in call.arguments.items()],
            "value": hex(call.value),
            "gasUsed": call.gas_used,
            "result": escape_line(shown_value(call.result)) if call.has_result else None,
            "reason": None if call.error is None else escape_line(self._reason(call)),
            "source": None
            if line is None
            else {"path": escape_line(line.path), "line": line.line, "text": escape_line(line.text)},
            "console": escape_line(console_text(call.input)) if is_console else None,
            "events": [escape_line(one) for one in call.events()],
            "calls": [
                self._members(one, below) for one, below in zip(call.calls, frame.get("calls") or (), strict=True)
            ],
        }

    def contract_of(self, frame: Mapping[str, Any]) -> CompiledContract | None:
        """Return the contract whose code runs in a frame; None if the contract is unknown."""
        return self._contract(_bytes(frame.get("to")))

    def _reason(self, call: CallTree) -> str:
        return self._index.reason(call.output) or call.reason or "unknown"

    @property
    def _tree(self) -> CallTree:
        return CallTree(self._frame, self._known)

    def _known(self, address: bytes) -> tuple[str, Any] | None:
        found = self._contract(address)
        return None if found is None else (found.name, found.abi)

    def _contract(self, address: bytes) -> CompiledContract | None:
        if self._contracts.get(address) is None:
            code = self._code_of(address)
            self._contracts[address] = self._index.deployed(code) if code else None
        return self._contracts[address]

    def _draw(
        self,
        call: CallTree,
        frame: Mapping[str, Any],
        indent: str,
        branch: str,
        below: str,
        is_coloured: bool,
        lines: list[str],
    ) -> None:
        if _is_console(frame):
            text = f"console.log: {console_text(call.input)}"
            lines.append(indent + branch + _coloured(escape_line(text), _YELLOW, is_coloured))
            return
        text = escape_line(call.line()) + self._place(frame)
        lines.append(indent + branch + _coloured(text, _RED if call.error is not None else "", is_coloured))
        inner = indent + below
        children: list[tuple[CallTree, Mapping[str, Any]] | str] = [
            *zip(call.calls, frame.get("calls") or (), strict=True),
            *(f"emit {one}" for one in call.events()),
        ]
        for place, child in enumerate(children):
            is_last = place == len(children) - 1
            own_branch, own_below = ("└── ", "    ") if is_last else ("├── ", "│   ")
            if isinstance(child, str):
                lines.append(inner + own_branch + _coloured(escape_line(child), _DIM, is_coloured))
            else:
                self._draw(*child, inner, own_branch, own_below, is_coloured, lines)

    def _place(self, frame: Mapping[str, Any]) -> str:
        """Return the source line at which a call failed, as text."""
        line = self._line(frame)
        return "" if line is None else f" at {escape_line(f'{line}: {line.text}')}"

    def _line(self, frame: Mapping[str, Any]) -> SourceLine | None:
        position, is_creation = frame.get("pc"), str(frame.get("type")).startswith("CREATE")
        contract = None if position is None or is_creation else self._contract(_bytes(frame.get("to")))
        return None if contract is None or position is None else contract.line_at(position)


def _frames(frame: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found, waiting = [], [frame]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting.extend(reversed(one.get("calls") or ()))
    return found


def _is_console(frame: Mapping[str, Any]) -> bool:
    return _bytes(frame.get("to")) == CONSOLE_ADDRESS


def _coloured(text: str, colour: str, is_coloured: bool) -> str:
    return f"{colour}{text}{_END}" if is_coloured and colour else text


def _bytes(text: object) -> bytes:
    return bytes.fromhex(str(text or "0x")[2:])
