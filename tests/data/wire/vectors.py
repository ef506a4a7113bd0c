"""Reader of `vectors.txt`."""

from __future__ import annotations

from functools import cache
from pathlib import Path


@cache
def _all() -> dict[str, bytes]:
    lines = (Path(__file__).parent / "vectors.txt").read_text().splitlines()
    pairs = (line.partition(" ") for line in lines if line and not line.startswith("#"))
    return {name: bytes.fromhex(digits) for name, _, digits in pairs}


def vector(name: str) -> bytes:
    """Return the bytes of a named test vector."""
    return _all()[name]
