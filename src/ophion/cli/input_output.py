"""Input and results of commands: a file, the standard streams or a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from getpass import getpass
from pathlib import Path
from typing import Any

from ophion.errors import CommandError
from ophion.runtime.options import read_text

_MAX_DIGITS = 100


def read_input(path: Path | None, failure: str) -> str:
    """Read a file, or standard input if `path` is None. Raises `CommandError(failure)` if reading fails."""
    if path is None and sys.stdin is None:
        raise CommandError(f"{failure} (standard input is closed)")
    try:
        content = sys.stdin.buffer.read() if path is None else path.read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{failure} ({path or 'standard input'}: {error.strerror})") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{failure} ({path or 'standard input'}: not UTF-8 at byte {error.start})") from error


def read_password() -> str:
    """Read a password. At a terminal the user types it twice; otherwise it is the first line of standard input."""
    if sys.stdin is None:
        raise CommandError("There is no password: standard input is closed.")
    if not sys.stdin.isatty():
        return _as_text(sys.stdin.readline().removesuffix("\n"))
    password = getpass("Password: ")
    if getpass("Again: ") != password:
        raise CommandError("The passwords are not the same.")
    return _as_text(password)


def _as_text(password: str) -> str:
    try:
        return read_text(password)
    except ValueError:
        raise CommandError("The password is not UTF-8.") from None


def write_output(path: Path | None, text: str, failure: str) -> None:
    """Write text to a file, or to standard output with a newline."""
    if path is None:
        print(text)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        raise CommandError(f"{failure} ({path}: {error.strerror})") from error


def parse_json(text: str, failure: str) -> Any:
    """Parse JSON. Raises `CommandError` with the text `failure`, line and column."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise CommandError(f"{failure} {error.msg} at line {error.lineno}, column {error.colno}.") from error
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{failure} {_reason(error)}.") from error


def _integer(digits: str) -> int:
    # check the length here, because this error message is clearer than the message of Python's own limit
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"A number of {len(digits)} digits")
    return int(digits)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _reason(error: Exception) -> str:
    return "The JSON is nested too deeply" if isinstance(error, RecursionError) else str(error)


def kind_of_json(value: Any) -> str:
    """Return the type of a JSON value, for error messages."""
    names: Sequence[tuple[type, str]] = ((bool, "a boolean"), (str, "text"), (dict, "an object"), (list, "an array"))
    return next((name for kind, name in names if isinstance(value, kind)), "null" if value is None else "a number")
