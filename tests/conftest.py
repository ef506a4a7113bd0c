"""Fixtures and settings for all tests.

Public test data is in `../shared`, outside of the repository. `shared_path` finds it, or skips the test with a reason.
`shared_files` lists it for parametrised tests; the list is empty if the data is missing.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection. With all tests, a full collection takes 0.2 s otherwise, and
    hundreds of tests start one to close a database.
    """
    gc.collect()
    gc.freeze()


def pytest_xdist_auto_num_workers() -> int:
    """Return the number of workers for `-n auto`: two for each processor, because tests with real nodes mostly wait for
    blocks.
    """
    return 2 * (os.cpu_count() or 1)


ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
WITH_PROCESSES = ("faults", "integration", "interop", "browser", "clients", "abuse", "fuzz")
"""Folders of tests that start processes."""
PROCESS_SHARE = 0.8
"""The part of a run over which files with processes are spread. The rest is left to short files, so that all workers
end together.
"""


def pytest_configure(config: pytest.Config) -> None:
    """Let each worker start at another folder, if it collects all tests.

    In a fresh checkout, each worker compiles the files it comes to first and reads the bytecode of the others.
    """
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    if worker is None or [config.rootpath / name for name in config.args] != [TESTS]:
        return
    entries = sorted((*TESTS.iterdir(), *(TESTS / "unit").iterdir()))
    places = [
        str(path)
        for path in entries
        if (path.is_dir() and path.name not in ("unit", "__pycache__")) or path.match("test_*.py")
    ]
    start = len(places) * int(worker["workerid"].removeprefix("gw")) // int(worker["workercount"])
    config.args[:] = places[start:] + places[:start]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spread files with processes evenly among the others, so that at any time some workers wait for blocks while
    others compute.

    The path decides between files at the same place: all workers must have one order, and each collects in its own.
    """
    files = sorted({item.path for item in items})
    waiting = [path for path in files if not set(WITH_PROCESSES).isdisjoint(path.parts)]
    busy = [path for path in files if set(WITH_PROCESSES).isdisjoint(path.parts)]
    order = {path: PROCESS_SHARE * number / len(waiting) for number, path in enumerate(waiting)}
    order |= {path: number / len(busy) for number, path in enumerate(busy)}
    items.sort(key=lambda item: (order[item.path], item.path))


SHARED = ROOT.parent / "shared"
DATA = TESTS / "data"


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
