"""Functions, events and errors of a contract, read from its ABI."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from ophion.abi.addresses import shortened
from ophion.abi.codec import Codec, tuple_codec
from ophion.abi.type_parser import MAX_DEPTH, declared_type, parse_type, split_types
from ophion.errors import AbiError
from ophion.native.crypto import keccak256
from ophion.primitives.hexcodec import data as hex_text

SELECTOR_BYTES = 4
_PANICS = {
    0x00: "generic panic",
    0x01: "assertion failed",
    0x11: "arithmetic overflow or underflow",
    0x12: "division by zero",
    0x21: "value out of range of an enum",
    0x22: "damaged storage byte array",
    0x31: "pop of an empty array",
    0x32: "array index out of bounds",
    0x41: "too much memory",
    0x51: "call of an empty function pointer",
}


def _no_parameters(value: object) -> AbiError:
    return AbiError(f"the parameters of an ABI are a list of objects, not {shortened(value)}")


class Parameters:
    """Inputs or outputs of a function, event or error."""

    __slots__ = ("codec", "codecs", "names")

    def __init__(self, entries: Sequence[Any], type_name: str = "", has_raw_addresses: bool = False) -> None:
        if not isinstance(entries, list | tuple) or not all(isinstance(one, Mapping) for one in entries):
            raise _no_parameters(entries)
        self.names = [str(one.get("name") or "") for one in entries]
        self.codecs = [declared_type(one, has_raw_addresses) for one in entries]
        self.codec = tuple_codec(self.codecs, self.names, type_name)

    def __len__(self) -> int:
        return len(self.codecs)

    def bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """Return positional and named arguments in declared order. Raises `AbiError` if one is missing or unknown."""
        if not named:
            if len(args) != len(self.codecs):
                raise self._wrong_count(len(args))
            return args
        if len(args) > len(self.codecs):
            raise self._wrong_count(len(args) + len(named))
        values = dict(zip(self.names, args, strict=False))
        unknown = [one for one in named if one not in self.names or one in values]
        values.update(named)
        missing = [one for one in self.names if one not in values]
        if unknown or missing:
            found = [
                f"{what}: {', '.join(which)}" for what, which in (("unknown", unknown), ("missing", missing)) if which
            ]
            raise AbiError(f"{'; '.join(found)}. Arguments: ({', '.join(self._declared())})")
        return [values[one] for one in self.names]

    def _wrong_count(self, given: int) -> AbiError:
        count = len(self.codecs)
        expected = "1 argument is" if count == 1 else f"{count} arguments are"
        return AbiError(f"{expected} expected, not {given}: ({', '.join(self._declared())})")

    def _declared(self) -> list[str]:
        return [f"{codec.name} {name}".rstrip() for codec, name in zip(self.codecs, self.names, strict=True)]

    def encode(self, values: Sequence[Any]) -> bytes:
        """Encode values. If a value does not fit its type, the `AbiError` names the argument."""
        try:
            return self.codec.encode(values)
        except AbiError as error:
            for position, (codec, value) in enumerate(zip(self.codecs, values, strict=False)):
                try:
                    codec.encode(value)
                except AbiError:
                    name = self.names[position] or f"{position + 1}"
                    raise AbiError(f"argument {name}: {error.message}") from None
            raise


class Function:
    """A function or constructor of a contract."""

    def __init__(self, entry: Mapping[str, Any], has_raw_addresses: bool = False) -> None:
        self.name = str(entry.get("name") or "constructor")
        self.inputs = Parameters(entry.get("inputs") or (), "", has_raw_addresses)
        self.outputs = Parameters(entry.get("outputs") or (), self.name)
        self.signature = f"{self.name}{self.inputs.codec.name}"
        self.selector = keccak256(self.signature.encode())[:SELECTOR_BYTES]
        mutability = entry.get("stateMutability")
        self.is_view = mutability in ("view", "pure") or bool(entry.get("constant"))
        self.is_payable = mutability == "payable" or bool(entry.get("payable"))

    def __repr__(self) -> str:
        return f"<function {self.signature}>"

    def encode(self, values: Sequence[Any]) -> bytes:
        """Encode a call of this function: the selector and the arguments."""
        return self.selector + self.inputs.encode(values)

    def decode_output(self, output: bytes) -> Any:
        """Return the decoded result: a single value, a tuple of several values, or None for a function without
        outputs.
        """
        if not self.outputs.codecs:
            return None
        values = self.outputs.codec.decode(output, 0)
        return values[0] if len(self.outputs.codecs) == 1 else values

    def decode_input(self, data: bytes) -> Sequence[Any]:
        """Decode call data. Returns the arguments."""
        values: Sequence[Any] = self.inputs.codec.decode(data[SELECTOR_BYTES:], 0)
        return values


class EventType:
    """An event that a contract can emit."""

    def __init__(self, entry: Mapping[str, Any], has_raw_addresses: bool = False) -> None:
        self.name = str(entry["name"])
        entries = entry.get("inputs") or ()
        self.inputs = Parameters(entries, "", has_raw_addresses)
        self.signature = f"{self.name}{self.inputs.codec.name}"
        self.is_anonymous = bool(entry.get("anonymous"))
        self.topic = keccak256(self.signature.encode())
        self.is_indexed = [bool(one.get("indexed")) for one in entries]
        self.indexed_count = sum(self.is_indexed)
        plain = [codec for codec, indexed in zip(self.inputs.codecs, self.is_indexed, strict=True) if not indexed]
        self._data = tuple_codec(plain)

    def __repr__(self) -> str:
        return f"<event {self.signature}>"

    def decode(self, topics: Sequence[bytes], data: bytes) -> dict[str, Any]:
        """Decode a log. Returns a dictionary from argument name to value."""
        names = [name or f"arg{position}" for position, name in enumerate(self.inputs.names)]
        return dict(zip(names, self.values(topics, data), strict=True))

    def values(self, topics: Sequence[bytes], data: bytes) -> list[Any]:
        """Decode a log. Returns the argument values in declared order. For an indexed argument of a dynamic type, the
        value is its hash. Raises `AbiError`.
        """
        hashed = topics if self.is_anonymous else topics[1:]
        if len(hashed) != self.indexed_count:
            raise AbiError(f"{self.signature} has {self.indexed_count} indexed arguments, not {len(hashed)}")
        words = iter(hashed)
        plain = iter(self._data.decode(data, 0))
        return [
            _decode_topic(codec, next(words)) if is_indexed else next(plain)
            for codec, is_indexed in zip(self.inputs.codecs, self.is_indexed, strict=True)
        ]


def _decode_topic(codec: Codec, word: bytes) -> Any:
    is_hash = codec.is_dynamic or bool(codec.components) or codec.item is not None
    return word if is_hash else codec.decode(word, 0)


class Abi:
    """The interface of a contract.

    >>> abi = Abi([{"type": "function", "name": "f", "inputs": [{"type": "uint256", "name": "x"}], "outputs": []}])
    >>> abi.function("f").signature
    'f(uint256)'
    """

    def __init__(self, entries: Iterable[Mapping[str, Any]]) -> None:
        self.entries: list[Mapping[str, Any]] = list(entries)

    @classmethod
    def of(cls, source: Abi | Iterable[Mapping[str, Any] | str]) -> Abi:
        """Return an interface from ABI entries, or from signatures such as `f(uint256) view returns (bool)`."""
        if isinstance(source, Abi):
            return source
        if isinstance(source, str | bytes | Mapping) or not isinstance(source, Iterable):
            hint = " Pass the member 'abi' of the artifact." if isinstance(source, Mapping) and "abi" in source else ""
            raise AbiError(f"an ABI is a list of entries or of signatures, not {shortened(source)}.{hint}")
        return cls([_entry(one) for one in source])

    @cached_property
    def functions(self) -> dict[str, list[Function]]:
        """Functions by name; overloaded functions share a name."""
        found: dict[str, list[Function]] = {}
        for entry in self.entries:
            if entry.get("type", "function") == "function" and entry.get("name"):
                function = Function(entry)
                found.setdefault(function.name, []).append(function)
        return found

    @cached_property
    def constructor(self) -> Function:
        for entry in self.entries:
            if entry.get("type") == "constructor":
                return Function(entry)
        return Function({"type": "constructor"})

    @cached_property
    def by_selector(self) -> dict[bytes, Function]:
        return {one.selector: one for several in self.functions.values() for one in several}

    @cached_property
    def events(self) -> dict[str, EventType]:
        return {str(one["name"]): EventType(one) for one in self.entries if one.get("type") == "event"}

    @cached_property
    def by_topic(self) -> dict[tuple[bytes, int], EventType]:
        """Events, except anonymous ones, by topic and number of indexed arguments. The number distinguishes ERC-20 from
        ERC-721 transfers.
        """
        made = [EventType(one) for one in self.entries if one.get("type") == "event"]
        return {(one.topic, one.indexed_count): one for one in made if not one.is_anonymous}

    @cached_property
    def errors(self) -> dict[bytes, Function]:
        """Custom errors of the contract by selector."""
        made = [Function(one) for one in self.entries if one.get("type") == "error"]
        return {one.selector: one for one in made}

    def check(self) -> None:
        """Raise `AbiError` if a parameter has no valid type. Without this check, the first use of the function would
        fail.
        """
        for entry in self.entries:
            for parameters in (entry.get("inputs") or (), entry.get("outputs") or ()):
                if not isinstance(parameters, list | tuple) or not all(isinstance(one, Mapping) for one in parameters):
                    raise _no_parameters(parameters)
                for one in parameters:
                    declared_type(one)

    def function(self, name: str, count: int | None = None) -> Function:
        """Return a function by name or by signature. Raises `AbiError` for an unknown or ambiguous name."""
        plain, bracket, _ = name.partition("(")
        several = self.functions.get(plain, ())
        if bracket:
            several = [one for one in several if one.signature == name.replace(" ", "")]
        elif count is not None and len(several) > 1:
            several = [one for one in several if len(one.inputs) == count]
        if len(several) == 1:
            return several[0]
        if not several:
            known = ", ".join(sorted(self.functions)) or "none"
            raise AbiError(f"there is no function '{name}'. Functions of this contract: {known}")
        raise AbiError(f"'{name}' is ambiguous: name one of {', '.join(one.signature for one in several)}")

    def decode_log(self, topics: Sequence[bytes], data: bytes) -> tuple[str, dict[str, Any]] | None:
        """Decode a log. Returns the event name and the arguments by name; None if the interface does not declare the
        event, or if the data does not fit the event.
        """
        if not topics:
            return None
        event = self.by_topic.get((topics[0], len(topics) - 1))
        if event is None:
            return None
        try:
            return event.name, event.decode(topics, data)
        except AbiError:
            return None


class DecodedError:
    """Decoded revert data. Data of an unknown error stays raw."""

    __slots__ = ("args", "data", "name")

    def __init__(self, data: bytes, name: str | None, args: Mapping[str, Any]) -> None:
        self.data = data
        self.name = name
        """Name of the error: `Error`, `Panic` or a custom error; None for an unknown error."""
        self.args = args

    def __str__(self) -> str:
        if not self.data:
            return "no reason given"
        if self.name is None:
            return f"unknown error {hex_text(self.data[:64])}"
        if self.name == "Error":
            return str(self.args["message"])
        if self.name == "Panic":
            code = int(self.args["code"])
            return f"panic {code:#04x}: {_PANICS.get(code, 'unknown code')}"
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self.args.items())})"


_ERROR = Function({"name": "Error", "inputs": [{"name": "message", "type": "string"}]})
_PANIC = Function({"name": "Panic", "inputs": [{"name": "code", "type": "uint256"}]})
_BUILT_IN = {one.selector: one for one in (_ERROR, _PANIC)}


def decode_error(data: bytes, known: Iterable[Abi] = ()) -> DecodedError:
    """Decode revert data. `known` are the interfaces whose custom errors are tried, besides Solidity's `Error` and
    `Panic`.
    """
    selector = data[:SELECTOR_BYTES]
    for table in (_BUILT_IN, *(one.errors for one in known)):
        error = table.get(selector)
        if error is None:
            continue
        try:
            values = error.decode_input(data)
        except AbiError:
            continue
        names = [name or f"arg{position}" for position, name in enumerate(error.inputs.names)]
        return DecodedError(data, error.name, dict(zip(names, values, strict=True)))
    return DecodedError(data, None, {})


def _entry(source: object) -> Mapping[str, Any]:
    if isinstance(source, str):
        return signature_entry(source)
    if not isinstance(source, Mapping):
        raise AbiError(f"{shortened(source)} is neither an entry of an ABI nor a signature")
    return source


def signature_entry(text: str) -> dict[str, Any]:
    """Return the ABI entry of a signature, such as `function balanceOf(address owner) view returns (uint256)`."""
    kind, words = "function", text.strip().rstrip(";")
    for one in ("function", "event", "error", "constructor"):
        if words.startswith((one + " ", one + "(")):
            kind, words = one, words[len(one) :].strip()
            break
    name, bracket, rest = words.partition("(")
    if not bracket:
        raise AbiError(f"'{text}' is not a signature: it has no brackets")
    inputs, rest = _until_closed(rest, text)
    entry: dict[str, Any] = {"type": kind, "name": name.strip(), "inputs": [_parameter(one) for one in inputs]}
    qualifiers, returns, outputs = rest.partition("returns")
    if returns:
        listed, _ = _until_closed(outputs.strip().removeprefix("("), text)
        entry["outputs"] = [_parameter(one) for one in listed]
    words_after = qualifiers.split()
    entry["stateMutability"] = next((one for one in ("view", "pure", "payable") if one in words_after), "nonpayable")
    entry["anonymous"] = "anonymous" in words_after
    return entry


def _until_closed(text: str, whole: str) -> tuple[list[str], str]:
    depth = 1
    for position, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return split_types(text[:position]), text[position + 1 :]
    raise AbiError(f"'{whole}' does not close all its brackets")


def _parameter(text: str, depth: int = 0) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise AbiError(f"types nest more than {MAX_DEPTH} deep")
    text = text.strip()
    if text.startswith("("):
        end = text.rindex(")")
        suffix, _, name = text[end + 1 :].strip().partition(" ")
        components = [_parameter(one, depth + 1) for one in split_types(text[1:end])]
        if suffix and not suffix.startswith("["):
            suffix, name = "", suffix
        return {"type": f"tuple{suffix}", "components": components, "name": name.strip()}
    words = text.split()
    if not words:
        raise AbiError("a parameter has no type")
    indexed, rest = "indexed" in words[1:], [one for one in words[1:] if one not in ("indexed", "memory", "calldata")]
    return {"type": parse_type(words[0]).name, "name": rest[0] if rest else "", "indexed": indexed}


__all__ = ["Abi", "AbiError", "Codec", "DecodedError", "EventType", "Function", "decode_error", "signature_entry"]
