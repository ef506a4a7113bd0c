"""What a runner of public vectors reports, and how it reads a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct

from ophion.errors import DecodeError


class Outcome(Struct, frozen=True):
    """One case of one file."""

    file: str
    case: str
    fork: str
    passed: bool | None
    """None: skipped, and `detail` says why."""
    detail: str = ""
    """Expected and got of a failure; empty when passed."""


def outcomes(path: Path, run: Callable[[str, Any], Iterable[Outcome]]) -> list[Outcome]:
    """The outcomes of all cases of a file, by name; a file that cannot be read is one failure."""
    try:
        cases = load_cases(path)
    except DecodeError as error:
        return [Outcome(str(path), "", "", False, str(error))]
    return [outcome for name, case in cases.items() for outcome in run(name, case)]


def load_cases(path: Path) -> dict[str, Any]:
    """The cases of a vector file by name; `DecodeError` when the file is not such a file."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DecodeError(f"not a readable JSON file: {error}", str(path)) from error
    if not isinstance(value, dict):
        raise DecodeError("the top level is not an object of cases", str(path))
    return value
