"""Reads typed values from text.

The annotation of a field selects the reader. A reader raises `ValueError` with the reason; the caller adds the names of
the option and the source.
"""

from __future__ import annotations

import enum
import ipaddress
import types
import typing
import urllib.parse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

Reader = Callable[[str], Any]
Check = Callable[[Any], None]

_UNIONS = (typing.Union, types.UnionType)
_NAMES_IN_METAVAR = 4


class ValueKind(Struct, frozen=True):
    """How values of one type are read, and their name in help texts."""

    read: Reader
    metavar: str
    is_bool: bool = False
    is_list: bool = False
    choices: tuple[str, ...] = ()

    def value(self, texts: Sequence[str], check: Check | None) -> Any:
        """Return the typed value of the texts: a tuple for lists, a single value otherwise."""
        if self.is_list:
            result: Any = tuple(self.read(text) for text in texts)
        elif len(texts) == 1:
            result = self.read(texts[0])
        else:
            raise ValueError("expected a single value")
        if check is not None:
            check(result)
        return result


def kind_of(annotation: Any, parse: Reader | None) -> ValueKind:
    """Return how values of an annotated type are read. `parse` replaces the reader of a single value."""
    origin = typing.get_origin(annotation)
    if origin in _UNIONS:
        inner = [member for member in typing.get_args(annotation) if member is not type(None)]
        if len(inner) == 1:
            return kind_of(inner[0], parse)
    if origin is tuple:
        item = kind_of(typing.get_args(annotation)[0], parse)
        return ValueKind(item.read, item.metavar, is_list=True, choices=item.choices)
    if parse is not None:
        return ValueKind(parse, "VALUE")
    if annotation is bool:
        return ValueKind(read_bool, "true|false", is_bool=True)
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        names = tuple(member.name for member in annotation)
        metavar = "|".join(names) if len(names) <= _NAMES_IN_METAVAR else "NAME"
        return ValueKind(_enum_reader(annotation), metavar, choices=names)
    simple: dict[Any, ValueKind] = {
        int: ValueKind(read_int, "NUMBER"),
        float: ValueKind(read_float, "NUMBER"),
        str: ValueKind(read_text, "TEXT"),
        Path: ValueKind(read_path, "FILE"),
    }
    if annotation in simple:
        return simple[annotation]
    raise TypeError(f"an option cannot be of type {annotation!r} without a parser of its own")


def read_text(text: str) -> str:
    """Read UTF-8 text. Raises for other bytes, which the command line and the environment may contain."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("it is not UTF-8") from None
    return text


def read_host(text: str) -> str:
    """Read the hosts of a service: one host name or address, or several with commas between them. An empty entry is
    refused, because it would mean every address.
    """
    if not all(hosts_of(text)):
        raise ValueError("it is empty; 0.0.0.0 is every address of this machine")
    return read_text(text)


_LOOPBACK: Final = ("127.0.0.1", "::1", "[::1]")


def hosts_of(text: str) -> list[str]:
    """Return the addresses of a service: one, or several with commas between them."""
    return [host.strip() for host in text.split(",")]


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a service that listens on this host, or on these hosts. Unknown names
    count as reachable by others.
    """
    if "," in host:
        return all(is_loopback(one) for one in hosts_of(host))
    # compare the common names first, because the ipaddress module takes milliseconds to load
    if host in _LOOPBACK or host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_url(text: str, *schemes: str) -> bool:
    """Whether the text is a URL with a host that can be looked up, and one of these schemes."""
    try:
        parts = urllib.parse.urlsplit(text)
        # a connection encodes the name in this way, and raises an error for an empty or long label
        return parts.scheme in schemes and bool((parts.hostname or "").encode("idna")) and parts.port != 0
    except ValueError:  # the URL may have an invalid port or an open bracket
        return False


def read_bool(text: str) -> bool:
    """Read true or false, case-insensitively."""
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError(f"'{text}' is not a boolean: expected true or false")
    return lowered == "true"


def read_int(text: str) -> int:
    """Read a decimal number, or hex digits after 0x."""
    body = text.removeprefix("-")
    is_hex = body[:2] in ("0x", "0X")
    digits = body[2:] if is_hex else body
    allowed = "0123456789abcdefABCDEF" if is_hex else "0123456789"
    # limit the digits, because int() takes quadratic time for long texts, and 256 bits need fewer than 80 digits
    if not digits or len(digits) > 80 or any(digit not in allowed for digit in digits):
        raise ValueError(f"'{text[:100]}' is not a whole number")
    value = int(digits, 16 if is_hex else 10)
    return -value if text.startswith("-") else value


def read_float(text: str) -> float:
    """Read a decimal fraction."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"'{text}' is not a number") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"'{text}' is not a number")
    return value


def hex_bytes(least: int, most: int, what: str) -> Reader:
    """Return a reader of hex bytes with optional 0x. `what` names the expected value in messages."""

    def read(text: str) -> bytes:
        digits = text.removeprefix("0x")
        try:
            data = bytes.fromhex(digits) if digits.isalnum() or not digits else None
        except ValueError:
            data = None
        if data is None or not least <= len(data) <= most:
            raise ValueError(f"'{text}' is not {what}")
        return data

    return read


read_address = hex_bytes(20, 20, "an address: expected 40 hex digits")


def read_path(text: str) -> Path:
    """Read a path; ~ is the home directory."""
    if not text:
        raise ValueError("the path is empty")
    if "\0" in text:
        raise ValueError("the path holds a zero byte")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def _enum_reader(cls: type[enum.Enum]) -> Reader:
    members = {member.name.lower(): member for member in cls}
    names = ", ".join(member.name for member in cls)

    def read(text: str) -> enum.Enum:
        member = members.get(text.lower().replace("-", "_"))
        if member is None:
            raise ValueError(f"expected one of [{names}] (case-insensitive) but was '{text}'")
        return member

    return read


def between(low: float, high: float) -> Check:
    """Return a check for low <= value <= high."""

    def check(value: Any) -> None:
        if value is not None and not low <= value <= high:
            raise ValueError(f"{value} is not between {low} and {high}")

    return check


def at_least(low: float) -> Check:
    """Return a check for value >= low."""

    def check(value: Any) -> None:
        if value is not None and value < low:
            raise ValueError(f"{value} is less than {low}")

    return check


port = between(0, 65535)
"""A check for port numbers. With 0, the system chooses a free port."""
