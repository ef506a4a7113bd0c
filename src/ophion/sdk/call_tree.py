"""`CallTree`: the calls of a transaction, with decoded names, arguments, results and gas.

Vault.deposit(amount=5) [61204 gas] from 0xf39F…
├── Token.transferFrom(from=0xf39F…, to=0x5FbD…, value=5) -> True [35112 gas]
│   └── emit Transfer(from=0xf39F…, to=0x5FbD…, value=5)
└── emit Deposited(amount=5)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ophion.abi.addresses import checksum_address
from ophion.abi.interface import SELECTOR_BYTES, Abi, decode_error
from ophion.errors import AbiError
from ophion.runtime.terminal_text import escape_line
from ophion.sdk.console_log import console_text

CONSOLE_ADDRESS = bytes.fromhex("000000000000000000636f6e736f6c652e6c6f67")
"""The address that `console.log` of Hardhat and Foundry calls."""

_MAX_SHOWN = 80


class CallTree:
    """One call and the calls inside of it. No method recurses, because calls nest up to 1,024 levels."""

    def __init__(self, frame: Mapping[str, Any], known: Callable[[bytes], tuple[str, Abi] | None]) -> None:
        self._read(frame, known)
        unread = [(self, frame)]
        while unread:
            parent, frame = unread.pop()
            for inner in frame.get("calls") or ():
                call = CallTree.__new__(CallTree)
                call._read(inner, known)
                parent.calls.append(call)
                unread.append((call, inner))

    def _read(self, frame: Mapping[str, Any], known: Callable[[bytes], tuple[str, Abi] | None]) -> None:
        """Read the fields of one call, without the calls inside of it."""
        self.kind = str(frame.get("type", "CALL"))
        self.sender = str(frame.get("from", ""))
        self.to = str(frame.get("to") or "")
        self.value = int(frame.get("value") or "0x0", 16)
        self.gas_used = int(frame.get("gasUsed") or "0x0", 16)
        self.input = _bytes(frame.get("input"))
        self.output = _bytes(frame.get("output"))
        self.error: str | None = frame.get("error")
        raw = _bytes(self.to)
        found = known(raw) if raw else None
        self.contract = checksum_address(raw) if found is None and raw else "" if found is None else found[0]
        self._abi = None if found is None else found[1]
        self._function = None if self._abi is None else self._abi.by_selector.get(self.input[:SELECTOR_BYTES])
        self.calls: list[CallTree] = []
        self._logs: Sequence[Mapping[str, Any]] = frame.get("logs") or ()
        self._known = known

    @property
    def function(self) -> str | None:
        """Name of the called function; None if the contract or the function is unknown."""
        return None if self._function is None else self._function.name

    @property
    def arguments(self) -> Mapping[str, Any]:
        """Arguments by name; empty when they are unknown."""
        if self._function is None:
            return {}
        try:
            values = self._function.decode_input(self.input)
        except AbiError:
            return {}
        names = self._function.inputs.names
        return {name or f"arg{place}": value for place, (name, value) in enumerate(zip(names, values, strict=True))}

    @property
    def result(self) -> Any:
        """Output of the call: decoded if the function is known, otherwise bytes."""
        if self._function is None or self.error is not None:
            return self.output
        try:
            return self._function.decode_output(self.output)
        except AbiError:
            return self.output

    @property
    def has_result(self) -> bool:
        """Whether the call has returned values that can be decoded."""
        return self.error is None and self._function is not None and bool(self._function.outputs.codecs)

    @property
    def reason(self) -> str | None:
        """Reason of the failure; None if the call succeeded."""
        if self.error is None:
            return None
        if self.output:
            return str(decode_error(self.output, () if self._abi is None else (self._abi,)))
        return self.error

    @property
    def console(self) -> list[str]:
        """Output of `console.log` in this call and in the calls inside of it."""
        lines = []
        for call in self.walk():
            if _bytes(call.to) == CONSOLE_ADDRESS:
                lines.append(console_text(call.input))
        return lines

    def walk(self) -> Iterator[CallTree]:
        """Yield this call and all calls inside of it, in order."""
        waiting = [self]
        while waiting:
            call = waiting.pop()
            yield call
            waiting += reversed(call.calls)

    def events(self) -> list[str]:
        """Logs of this call itself, as text."""
        shown = []
        for log in self._logs:
            topics = [_bytes(one) for one in log.get("topics") or ()]
            found = self._known(_bytes(log.get("address") or self.to))
            decoded = None if found is None else found[1].decode_log(topics, _bytes(log.get("data")))
            if decoded is None:
                shown.append(f"log({', '.join('0x' + one.hex() for one in topics)})")
            else:
                shown.append(f"{decoded[0]}({_pairs(decoded[1])})")
        return shown

    @property
    def name(self) -> str:
        """Contract, function and arguments of the call."""
        if self.kind in ("CREATE", "CREATE2"):
            return f"new {self.contract}"
        if self._function is not None:
            return f"{self.contract}.{self._function.name}({_pairs(self.arguments)})"
        if self.input:
            return f"{self.contract}.{'0x' + self.input[:SELECTOR_BYTES].hex()}({len(self.input)} bytes)"
        return f"{self.contract} receives"

    def line(self) -> str:
        """This call as one line. Control characters in data of contracts are escaped."""
        text = self.name
        if self.kind in ("DELEGATECALL", "STATICCALL", "CALLCODE"):
            text = f"{self.kind.lower()} {text}"
        if self.value:
            text += f" value={self.value}"
        if self.error is not None:
            text += f" !! {self.reason}"
        elif self.has_result:
            text += f" -> {shown_value(self.result)}"
        return f"{escape_line(text)} [{self.gas_used} gas]"

    def __str__(self) -> str:
        lines = [self.line()]
        waiting = self._branches("")
        while waiting:
            indent, is_last, child = waiting.pop()
            branch, below = ("└── ", "    ") if is_last else ("├── ", "│   ")
            if isinstance(child, str):
                lines.append(indent + branch + child)
            else:
                lines.append(indent + branch + child.line())
                waiting += child._branches(indent + below)
        return "\n".join(lines)

    def _branches(self, indent: str) -> list[tuple[str, bool, CallTree | str]]:
        """Return the calls and events inside this call in reverse order, each with its indent and an is-last flag."""
        children: list[CallTree | str] = [*self.calls, *(escape_line(f"emit {one}") for one in self.events())]
        return [(indent, place == 0, child) for place, child in enumerate(reversed(children))]

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from ophion.sdk.html import call_tree

        texts: dict[int, str] = {}
        for call in reversed(list(self.walk())):  # start with the innermost calls
            below = [texts.pop(id(one)) for one in call.calls]
            below += [call_tree(f"emit {one}", "", is_failed=False) for one in call.events()]
            texts[id(call)] = call_tree(call.line(), "".join(below), call.error is not None)
        return texts[id(self)]


def _bytes(text: object) -> bytes:
    return bytes.fromhex(str(text or "0x")[2:])


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={shown_value(value)}" for name, value in values.items())


def shown_value(value: Any) -> str:
    """Return a decoded value as text of bounded length."""
    text = "0x" + value.hex() if isinstance(value, bytes) else repr(value) if not isinstance(value, str) else value
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
