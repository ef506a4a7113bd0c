"""axe-core, the accessibility checker, from npm. It is not part of this repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT


def _places() -> Iterator[Path]:
    if named := os.environ.get("AXE"):
        yield Path(named)
    for folder in (ROOT, *ROOT.parents):
        yield folder / "node_modules" / "axe-core" / "axe.min.js"


def axe_source() -> str:
    """Return the script of axe-core. Skips the test if it is missing."""
    for place in _places():
        if place.is_file():
            return place.read_text()
    pytest.skip("axe-core is not here (npm install axe-core beside the repository, or AXE=path of axe.min.js)")
