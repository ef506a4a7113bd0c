"""Tests modules that are hidden for a while, and modules whose import is deferred until they are used."""

from __future__ import annotations

import builtins
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from ophion.runtime.lazy_imports import left_out, load_later
from ophion.testing.node_process import environment

NAME = "colorsys"
"""A module that no test imports."""


@pytest.fixture(autouse=True)
def fresh() -> None:
    sys.modules.pop(NAME, None)


def test_a_module_is_away_for_a_while_and_then_itself() -> None:
    with left_out(NAME), pytest.raises(ImportError):
        __import__(NAME)
    assert hasattr(__import__(NAME), "rgb_to_hsv")


def test_a_module_can_be_replaced() -> None:
    other = ModuleType(NAME)
    with left_out(NAME, other):
        assert __import__(NAME) is other
    assert __import__(NAME) is not other


def test_one_that_is_loaded_stays() -> None:
    loaded = __import__(NAME)
    with left_out(NAME):
        assert __import__(NAME) is loaded
    assert sys.modules[NAME] is loaded


def test_a_failure_changes_nothing() -> None:
    with pytest.raises(ZeroDivisionError), left_out(NAME):
        raise ZeroDivisionError
    assert NAME not in sys.modules


@pytest.fixture
def put_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a folder for modules. Modules named `slow...` are loaded at first use."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = list(sys.meta_path)
    load_later(["slow_one", "slow_two", "slow_wrong", "slow_none"])
    yield tmp_path
    sys.meta_path[:] = before
    for name in [name for name in sys.modules if name.startswith("slow_")]:
        del sys.modules[name]


def test_a_module_is_loaded_when_something_in_it_is_used(put_off: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (put_off / "slow_one.py").write_text("loaded.append(__name__)\nvalue = 7\n")
    loaded: list[str] = []
    monkeypatch.setattr(builtins, "loaded", loaded, raising=False)
    one = import_module("slow_one")
    assert import_module("slow_one") is one
    assert __import__("slow_one") is one
    assert one.__spec__ is not None
    assert (one.__name__, one.__file__, loaded) == ("slow_one", str(put_off / "slow_one.py"), [])
    assert one.value == 7
    assert loaded == ["slow_one"]
    assert type(one) is ModuleType
    assert one.value == 7
    assert loaded == ["slow_one"]
    assert import_module("slow_one") is one


def test_what_it_does_not_have_is_said_as_always(put_off: Path) -> None:
    (put_off / "slow_one.py").write_text("value = 7\n")
    with pytest.raises(AttributeError, match="module 'slow_one' has no attribute 'other'"):
        _ = import_module("slow_one").other
    with pytest.raises(ImportError, match="cannot import name 'other'"):
        exec("from slow_one import other")
    with pytest.raises(ModuleNotFoundError):
        import_module("slow_none")


def test_modules_that_are_loaded_later_may_use_each_other(put_off: Path) -> None:
    (put_off / "slow_one.py").write_text("first = 1\nimport slow_two\nthird = slow_two.second + 1\n")
    (put_off / "slow_two.py").write_text("import slow_one\nsecond = slow_one.first + 1\n")
    assert import_module("slow_one").third == 3


def test_a_module_that_fails_says_why(put_off: Path) -> None:
    (put_off / "slow_wrong.py").write_text("1 / 0\n")
    wrong = import_module("slow_wrong")
    with pytest.raises(ZeroDivisionError):
        _ = wrong.value


def test_threads_that_use_it_at_the_same_time_find_all_of_it(put_off: Path) -> None:
    (put_off / "slow_one.py").write_text("import time\nfirst = 1\ntime.sleep(0.05)\nlast = 2\n")
    one = import_module("slow_one")
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: (one.last, one.first), range(8)))
    assert found == [(2, 1)] * 8


def test_a_known_attribute_is_imported_by_name_and_loads_nothing(
    put_off: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (put_off / "slow_known.py").write_text("loaded.append(__name__)\nvalue, other = 7, 8\n")
    loaded: list[str] = []
    monkeypatch.setattr(builtins, "loaded", loaded, raising=False)
    load_later(["slow_known"], {"slow_known": {"value": 3}})
    names: dict[str, object] = {}
    exec("from slow_known import value", names)
    assert (names["value"], loaded) == (3, [])
    exec("from slow_known import other, value", names)
    assert (names["other"], names["value"], loaded) == (8, 7, ["slow_known"])


def test_a_lazy_module_is_complete_at_first_use() -> None:
    code = (
        "import sys; from ophion.runtime.lazy_imports import _KNOWN, _LATER, load_later;"
        "load_later(_LATER, _KNOWN); from importlib import import_module;"
        "print(all(type(import_module(name)).__name__ == '_Later' for name in _LATER));"
        "import asyncio, msgspec; print(msgspec.json.decode(b'[1]'), hasattr(asyncio.sslproto, 'SSLProtocol'));"
        "import ipaddress, locale, textwrap, tokenize;"
        "print(ipaddress.ip_address('::1'), textwrap.dedent('  x'), locale.LC_ALL >= 0, tokenize.COMMENT > 0);"
        "print(msgspec.inspect.type_info(int));"
        "from pathlib import Path; print(Path('/a b').as_uri(), Path('/c d').as_uri())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False, env=environment()
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:3] == ["True", "[1] True", "::1 x True True"]
    assert "IntType" in done.stdout.splitlines()[3]
    assert done.stdout.splitlines()[4] == "file:///a%20b file:///c%20d"
