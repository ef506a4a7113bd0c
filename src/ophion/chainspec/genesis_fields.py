"""Genesis JSON as objects that are read by name.

Keys are case-insensitive at every depth and converted to lower case. `GenesisObject` records the keys that were read;
all other keys are reported as unknown. Every error has the path of the key.

JSON permits repeated keys, and files often repeat comments. Reading a repeated key is an error, because its value is
ambiguous. A repeated key that is not read causes a warning.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from ophion.errors import GenesisError
from ophion.primitives.hexcodec import HexError, parse_data_lenient, strip_prefix
from ophion.primitives.types import ADDRESS_LENGTH, Address

MAX_DEPTH: Final = 32
"""Maximum nesting depth. Deeper JSON is refused before parsing."""

# an unterminated string or comment matches up to the end of the text, so that no text is scanned twice
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*|/\*(?:.*?\*/|.*)|[\[\]{}]', re.DOTALL)
_COMMENT_WARNING: Final = "The genesis file contains comments, which are not part of JSON; they are ignored."
_DIGITS: Final = re.compile(r"[0-9]{1,100}")
_HEX: Final = re.compile(r"[0-9a-fA-F]{1,128}")
_SHOWN: Final = 100
_MAX_DIGITS: Final = 100
_MAX_NAMED: Final = 5


class LowerCaseObject(dict[str, Any]):
    """A JSON object with lower-case keys. Records the original spelling and the repeated keys."""

    __slots__ = ("repeated", "spelling")

    def __init__(self, pairs: Iterable[tuple[str, Any]] = ()) -> None:
        super().__init__()
        self.spelling: dict[str, str] = {}
        self.repeated: dict[str, str] = {}
        for key, value in pairs:
            folded = key.lower()
            if folded in self:
                self.repeated[folded] = key
            self[folded] = value
            self.spelling[folded] = key

    def refuse_repeated(self, key: str) -> None:
        """Raise `GenesisError` when a key has more than one value."""
        if key in self.repeated:
            raise GenesisError(
                f"Invalid genesis file: member '{_shown(self.repeated[key])}' appears twice in one object (keys are "
                "compared without regard to case)",
                self.repeated[key],
            )


def parse_json(text: bytes | str) -> tuple[LowerCaseObject, list[str]]:
    """Return the object of a genesis file, and warnings. `GenesisError` names line and column.

    A repeated key causes a warning. Reading that key later causes an error.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise GenesisError(f"Invalid genesis file: not UTF-8 text at byte {error.start}") from error
    text, has_comments = _without_comments(text)
    repeated: dict[str, str] = {}

    def folded(pairs: list[tuple[str, Any]]) -> LowerCaseObject:
        folded = LowerCaseObject(pairs)
        repeated.update(folded.repeated)
        return folded

    try:
        value = json.loads(text, object_pairs_hook=folded, parse_constant=_refuse_constant, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise GenesisError(f"Invalid genesis file: {error.msg} at line {error.lineno}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise GenesisError(f"Invalid genesis file: {error}") from error
    if not isinstance(value, LowerCaseObject):
        raise GenesisError("Invalid genesis file: the top level must be a JSON object")
    warnings = [_COMMENT_WARNING] if has_comments else []
    if repeated:
        names = [_shown(name) for name in islice(repeated.values(), _MAX_NAMED)]
        more = [f"and {len(repeated) - len(names)} more"] if len(repeated) > len(names) else []
        warnings.append(f"Members that appear twice in one object are ignored: {', '.join(names + more)}")
    return value, warnings


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _without_comments(text: str) -> tuple[str, bool]:
    """Replace comments with blanks, so that positions in the text stay the same. Raises an error for deep nesting."""
    depth = 0
    pieces: list[str] = []
    copied = 0
    for match in _TOKENS.finditer(text):
        token = match[0]
        first = token[0]
        if first in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                line = text.count("\n", 0, match.start()) + 1
                column = match.start() - text.rfind("\n", 0, match.start())
                raise GenesisError(
                    f"Invalid genesis file: nested deeper than {MAX_DEPTH} levels at line {line}, column {column}"
                )
        elif first in "}]":
            depth -= 1
        elif first == "/":
            pieces.append(text[copied : match.start()])
            pieces.append(re.sub(r"[^\n]", " ", token))
            copied = match.end()
    if not pieces:
        return text, False
    pieces.append(text[copied:])
    return "".join(pieces), True


class GenesisObject:
    """One JSON object of a genesis file, whose keys are read by name."""

    __slots__ = ("_asked", "_children", "_path", "_values")

    def __init__(self, values: LowerCaseObject, path: str = "") -> None:
        self._values = values
        self._path = path
        self._asked: set[str] = set()
        self._children: dict[str, GenesisObject] = {}

    def get(self, name: str) -> Any:
        """Return the raw value of a key, or None if the key is absent or null."""
        key = name.lower()
        self._asked.add(key)
        self._values.refuse_repeated(key)
        return self._values.get(key)

    def has(self, name: str) -> bool:
        """Whether the key is present and not null."""
        return self.get(name) is not None

    def names(self) -> list[str]:
        """All keys of the object, in lower case."""
        return list(self._values)

    def unknown(self) -> list[str]:
        """Return the paths of all keys that were not read, including nested keys, in their original spelling."""
        own = [self.path(_shown(self._values.spelling[key])) for key in self._values if key not in self._asked]
        return own + [path for child in self._children.values() for path in child.unknown()]

    def path(self, name: str) -> str:
        """Return the path of a key from the root of the genesis file, for error messages."""
        return f"{self._path}.{name}" if self._path else name

    def invalid(self, name: str, value: Any, reason: str = "") -> GenesisError:
        """Return the error for a key whose value is invalid. `reason` says why."""
        where = self.path(name)
        because = f" ({reason})" if reason else ""
        return GenesisError(f"Invalid {where} in genesis block configuration: {_shown(value)}{because}", where)

    def missing(self, name: str) -> GenesisError:
        """Return the error for a missing key."""
        where = self.path(name)
        return GenesisError(f"Invalid genesis block configuration, missing value for '{where}'", where)

    def child(self, name: str) -> GenesisObject | None:
        """Return the object that is the value of a key."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, LowerCaseObject):
            raise self.invalid(name, value, "must be an object")
        return self._child(name, value)

    def children(self, name: str) -> list[GenesisObject]:
        """Return the list of objects under a key, or an empty list if the key is absent."""
        value = self.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.invalid(name, value, "must be a list of objects")
        result = []
        for index, item in enumerate(value):
            if not isinstance(item, LowerCaseObject):
                raise self.invalid(f"{name}[{index}]", item, "must be an object")
            result.append(self._child(f"{name}[{index}]", item))
        return result

    def _child(self, name: str, values: LowerCaseObject) -> GenesisObject:
        """Return a nested object. Repeated calls return the same object, which records the keys that were read."""
        key = name.lower()
        if key not in self._children:
            self._children[key] = GenesisObject(values, self.path(name))
        return self._children[key]

    def number(self, name: str, bits: int = 64, minimum: int = 0) -> int | None:
        """Read the number under a key: a JSON number, or text that is hexadecimal after 0x and otherwise decimal."""
        value = self.get(name)
        if value is None:
            return None
        return self._bounded(name, value, as_number(value), bits, minimum)

    def hex_number(self, name: str, bits: int = 64) -> int | None:
        """Read the number under a key: a JSON number, or hexadecimal text with optional 0x."""
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, str):
            digits = strip_prefix(value)
            number = int(digits, 16) if _HEX.fullmatch(digits) else None
        else:
            number = as_number(value)
        return self._bounded(name, value, number, bits, 0)

    def plain_number(self, name: str, bits: int = 64, minimum: int = 0) -> int | None:
        """Read the number under a key. Only a JSON number is accepted, because fork activations are never text."""
        value = self.get(name)
        if value is None:
            return None
        if isinstance(value, str):
            raise self.invalid(name, value, "must be a JSON number")
        return self._bounded(name, value, as_number(value), bits, minimum)

    def flag(self, name: str) -> bool:
        """Read the value true or false under a key. An absent key counts as false."""
        value = self.get(name)
        if value is None:
            return False
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            raise self.invalid(name, value, "must be true or false")
        return value

    def text(self, name: str) -> str | None:
        """Read the text under a key."""
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise self.invalid(name, value, "must be text")
        return value

    def data(self, name: str, size: int | None = None) -> bytes | None:
        """Read the hexadecimal bytes under a key, with optional 0x. With `size`, any other length is an error."""
        value = self.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.invalid(name, value, "must be hexadecimal text")
        try:
            return parse_data_lenient(value, size)
        except HexError as error:
            raise self.invalid(name, value, error.problem) from error

    def address(self, name: str) -> Address | None:
        """Read the address under a key. Blank text counts as an absent key."""
        value = self.get(name)
        if isinstance(value, str) and not value.strip():
            return None
        if not isinstance(value, str):
            return self.data(name, ADDRESS_LENGTH)
        try:
            return parse_address_lenient(value)
        except HexError as error:
            raise self.invalid(name, value, error.problem) from error

    def _bounded(self, name: str, value: Any, number: int | None, bits: int, minimum: int) -> int:
        if number is None:
            raise self.invalid(name, value, "must be a number")
        if number < minimum:
            raise self.invalid(name, value, f"must be at least {minimum}")
        if number.bit_length() > bits:
            raise self.invalid(name, value, f"must fit {bits} bits")
        return number


def parse_address_lenient(text: str) -> Address:
    """Read an address with optional prefix. A shorter address is padded with zeros on the left; Besu does the same."""
    digits = strip_prefix(text)
    return parse_data_lenient(digits.rjust(2 * ADDRESS_LENGTH, "0") if digits else text, ADDRESS_LENGTH)


def as_number(value: Any) -> int | None:
    """Return the integer of a JSON number or of text (0x hexadecimal, otherwise decimal), or None for other values."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if not isinstance(value, str):
        return None
    text = value.strip()
    if text[:2] in ("0x", "0X"):
        return int(text[2:], 16) if _HEX.fullmatch(text, 2) else None
    return int(text) if _DIGITS.fullmatch(text) else None


def _shown(value: Any) -> str:
    """Format a value for a message: one short line without control characters."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
