"""Fixtures and settings for all tests.

Public test data is in `../shared`, outside of the repository. `shared_path` finds it, or skips the test with a reason.
`shared_files` lists it for parametrised tests; the list is empty if the data is missing.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# set no deadline, because the duration of an example depends on the machine and not on the code
settings.register_profile("ophion", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ophion")

RECURSION_LIMIT = sys.getrecursionlimit()

# A background process ignores these signals, and its children inherit that. Install an empty handler, which children do
# not inherit.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(number, lambda number, frame: None)


def pytest_runtest_setup() -> None:
    """Reset the recursion limit. Some client libraries (py_ecc) raise the limit, and then nested JSON would crash the
    process.
    """
    sys.setrecursionlimit(RECURSION_LIMIT)


def pytest_xdist_auto_num_workers() -> int:
    """Return the number of workers for `-n auto`: two for each processor, because tests with real nodes mostly wait for
    blocks.
    """
    return 2 * (os.cpu_count() or 1)


WITH_PROCESSES = ("faults", "integration", "interop", "browser", "clients", "abuse", "fuzz")
"""Folders of tests that start processes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put tests with processes first, so that they wait for blocks while other workers compute."""
    items.sort(key=lambda item: not any(folder in item.path.parts for folder in WITH_PROCESSES))


ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
DATA = ROOT / "tests" / "data"


def shared_path(*parts: str) -> Path:
    """Return a file or folder under ../shared. Skips the test (or the module, at import) if the data is missing."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"public test data ../shared/{'/'.join(parts)} is not here", allow_module_level=True)
    return path


def shared_files(folder: str, pattern: str = "**/*.json") -> list[Path]:
    """Return files under ../shared/<folder> in a stable order. The list is empty if the folder is missing."""
    return sorted((SHARED / folder).glob(pattern))


@pytest.fixture
def shared() -> Callable[..., Path]:
    """Return `shared_path`, for tests that use a fixture."""
    return shared_path


@pytest.fixture
def data() -> Path:
    """Return the small part of the public data that is in the repository."""
    return DATA
