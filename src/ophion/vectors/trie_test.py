"""Runner for TrieTests: roots after changes, with plain keys, or with hashed keys in files named `secure`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ophion.errors import DecodeError
from ophion.native.exceptions import NativeError
from ophion.native.tries import trie_root
from ophion.primitives.hexcodec import parse_data_lenient, strip_prefix
from ophion.vectors.outcome import Outcome, outcomes


def run_file(path: Path) -> list[Outcome]:
    """Run a file; return one outcome for each case."""
    is_secure = "secure" in path.stem.lower()
    return outcomes(path, lambda name, case: [_outcome(str(path), name, case, is_secure)])


def _outcome(file: str, name: str, case: dict[str, Any], is_secure: bool) -> Outcome:
    if "tests" in case:
        return Outcome(file, name, "", None, "neighbours of plain keys: no part of the node asks a trie for them")
    try:
        pairs = case["in"].items() if isinstance(case["in"], dict) else case["in"]
        changes = [(_bytes(key), None if value is None else _bytes(value)) for key, value in pairs]
        got = trie_root(changes, is_secure).hex()
        expected = strip_prefix(case["root"])
    except (DecodeError, NativeError, KeyError, TypeError, ValueError) as error:
        return Outcome(file, name, "", False, f"malformed case: {error}")
    return Outcome(file, name, "", got == expected, "" if got == expected else f"expected {expected}, got {got}")


def _bytes(text: str) -> bytes:
    return parse_data_lenient(text) if text.startswith("0x") else text.encode()
