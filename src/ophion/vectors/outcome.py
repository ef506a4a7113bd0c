"""Outcomes of the public tests, and a reader of their files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from ophion.errors import DecodeError


class Outcome(Struct, frozen=True):
    """The outcome of one case."""

    file: str
    case: str
    fork: str
    passed: bool | None
    """Whether the case passed; None if it was skipped. `detail` has the reason."""
    detail: str = ""
    """Expected and actual result of a failure; empty if passed."""


def outcomes(path: Path, run: Callable[[str, Any], Iterable[Outcome]]) -> list[Outcome]:
    """Return the outcomes of all cases in a file. `run` gets the name and the content of a case. A file that cannot be
    read counts as one failure.
    """
    try:
        cases = load_cases(path)
    except DecodeError as error:
        return [Outcome(str(path), "", "", False, str(error))]
    return [outcome for name, case in cases.items() for outcome in run(name, case)]


def load_cases(path: Path) -> dict[str, Any]:
    """Return the cases of a file by name. Raises `DecodeError` if the file has another format."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DecodeError(f"not a readable JSON file: {error}", str(path)) from error
    if not isinstance(value, dict):
        raise DecodeError("the top level is not an object of cases", str(path))
    return value
