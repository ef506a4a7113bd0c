"""What every test may use.

Public test data lies beside the repository, in `../shared`, and is not part of it. `shared_path` finds it or skips the
test with a reason, `shared_files` lists it for parametrised tests and gives nothing where it is absent.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says something about the machine, not about the code.
settings.register_profile("ophion", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ophion")

RECURSION_LIMIT = sys.getrecursionlimit()

# Run in the background of a script, or with nohup, tests are started with these ignored, and every process they start
# would inherit that: nobody could stop it by Ctrl-C. What is handled is not inherited, and still does nothing here.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(number, lambda number, frame: None)


def pytest_runtest_setup() -> None:
    """Libraries of clients raise the limit for the whole process (py_ecc), under which nested JSON would kill it."""
    sys.setrecursionlimit(RECURSION_LIMIT)


ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
DATA = ROOT / "tests" / "data"


def shared_path(*parts: str) -> Path:
    """A file or folder under ../shared; skips the test (or the module, at import) when it is not there."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"public test data ../shared/{'/'.join(parts)} is not here", allow_module_level=True)
    return path


def shared_files(folder: str, pattern: str = "**/*.json") -> list[Path]:
    """Files under ../shared/<folder> in a stable order; an empty list where the folder is absent."""
    return sorted((SHARED / folder).glob(pattern))


@pytest.fixture
def shared() -> Callable[..., Path]:
    """`shared_path` for tests that prefer a fixture."""
    return shared_path


@pytest.fixture
def data() -> Path:
    """The small part of the public data that is written into the repository."""
    return DATA
