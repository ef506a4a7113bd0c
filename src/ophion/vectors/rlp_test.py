"""Runner for RLPTests: values and their encodings, and encodings that must not decode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ophion.errors import DecodeError, OphionError
from ophion.primitives import rlp
from ophion.primitives.hexcodec import parse_data_lenient
from ophion.vectors.outcome import Outcome, outcomes


def run_file(path: Path) -> list[Outcome]:
    """Run a file; return one outcome for each case."""
    return outcomes(path, lambda name, case: [_outcome(path, name, case)])


def _outcome(path: Path, name: str, case: Any) -> Outcome:
    try:
        problem = _problem(case["in"], parse_data_lenient(case["out"]))
    except (OphionError, KeyError, TypeError) as error:
        problem = f"malformed case: {error}"
    return Outcome(str(path), name, "", not problem, problem)


def _problem(value: Any, encoded: bytes) -> str:
    """Return why a case failed, or an empty text. If `value` is `INVALID`, the encoding must not decode; if `VALID`, it
    must decode. Any other value must match the decoded value.
    """
    try:
        decoded = rlp.decode(encoded)
    except DecodeError as error:
        return "" if value == "INVALID" else f"expected a value, got {error}"
    if value == "INVALID":
        return "expected a refusal, got a value"
    if rlp.encode(decoded) != encoded:
        return f"decoded value encodes to {rlp.encode(decoded).hex()}"
    if value != "VALID" and rlp.encode(_encodable(value)) != encoded:
        return f"expected {encoded.hex()}, got {rlp.encode(_encodable(value)).hex()}"
    return ""


def _encodable(value: Any) -> rlp.Encodable:
    """Convert JSON to an RLP value: numbers are scalars, `#` starts a big decimal, other text stands for its bytes."""
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    if isinstance(value, int):
        return value
    text = str(value)
    return int(text[1:]) if text.startswith("#") else text.encode("latin-1")
