"""Tests that modules are found and loaded as the standard library finds and loads them."""

from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from ophion.runtime import bytecode_files, lazy_imports
from ophion.runtime.bytecode_files import OwnModuleFinder, get_code, read_bytecode_directly
from ophion.testing.node_process import environment

TEXT = "def double(number):\n    return 2 * number\n\nvalue = double(21)\n"
STANDARD = bytecode_files._standard_get_code


def value_of(path: Path) -> object:
    """Return what both loaders find in a module."""
    found: list[object] = []
    for load in (get_code, STANDARD):
        code = load(SourceFileLoader("sample", str(path)), "sample")
        assert code is not None
        assert code.co_filename == str(path)
        assert {one.co_filename for one in code.co_consts if hasattr(one, "co_filename")} <= {str(path)}
        names: dict[str, object] = {}
        exec(code, names)
        found.append(names["value"])
    assert found[0] == found[1]
    return found[0]


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "sample.py"
    path.write_text(TEXT)
    return path


def test_the_code_of_own_modules_is_that_of_the_standard_library() -> None:
    for module in (bytecode_files, lazy_imports):
        loader = SourceFileLoader(module.__name__, str(module.__file__))
        assert get_code(loader, module.__name__) == STANDARD(loader, module.__name__)


def test_a_module_without_bytecode_is_compiled(sample: Path) -> None:
    assert value_of(sample) == 42


def test_bytecode_is_used_without_the_source(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    py_compile.compile(str(sample), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    monkeypatch.setattr(bytecode_files, "_standard_get_code", None)
    assert get_code(SourceFileLoader("sample", str(sample)), "sample") is not None


@pytest.mark.parametrize("change", [TEXT.replace("21", "22"), TEXT + "value = 44\n"], ids=["time", "size"])
def test_stale_bytecode_is_not_used(sample: Path, change: str) -> None:
    py_compile.compile(str(sample), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    before = sample.stat().st_mtime
    sample.write_text(change)
    later = before if len(change) != len(TEXT) else before + 2
    os.utime(sample, (later, later))
    assert value_of(sample) == 44


def test_a_moved_module_names_its_new_file(sample: Path, tmp_path: Path) -> None:
    py_compile.compile(str(sample), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    sample.with_name("__pycache__").rename(moved / "__pycache__")
    sample.rename(moved / "sample.py")
    assert value_of(moved / "sample.py") == 42


def test_bytecode_with_a_hash_is_left_to_the_standard_library(sample: Path) -> None:
    py_compile.compile(str(sample), invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    status = sample.stat()
    sample.write_text(TEXT.replace("21", "22"))
    os.utime(sample, (status.st_mtime, status.st_mtime))
    assert value_of(sample) == 44


@pytest.mark.parametrize("kept", [0, 10, 16, 40])
def test_damaged_bytecode_is_left_to_the_standard_library(sample: Path, kept: int) -> None:
    py_compile.compile(str(sample), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    bytecode = Path(cache_from_source(str(sample)))
    bytecode.write_bytes(bytecode.read_bytes()[:kept])
    try:
        expected: object = STANDARD(SourceFileLoader("sample", str(sample)), "sample")
    except EOFError as error:
        expected = str(error)
    bytecode.write_bytes(bytecode.read_bytes()[:kept])
    try:
        found: object = get_code(SourceFileLoader("sample", str(sample)), "sample")
    except EOFError as error:
        found = str(error)
    assert found == expected


def test_a_loader_of_another_class_keeps_its_own_steps(sample: Path) -> None:
    class Other(SourceFileLoader):
        def get_data(self, path: str) -> bytes:
            return b"value = 1\n" if path == self.path else b""

    code = get_code(Other("sample", str(sample)), "sample")
    assert code is not None
    names: dict[str, object] = {}
    exec(code, names)
    assert names["value"] == 1


def test_the_command_reads_bytecode_directly() -> None:
    shown = "from importlib.machinery import SourceFileLoader as one; print(one.get_code.__module__)"
    code = f"from ophion.runtime.lazy_imports import prepare; prepare(); {shown}"
    ran = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60)
    assert ran.stdout.strip() == read_bytecode_directly.__module__


def test_own_modules_are_found_as_by_the_standard_library() -> None:
    names = [name for name in sys.modules if name.startswith("ophion.")]
    found = 0
    for name in names:
        path = sys.modules[name.rpartition(".")[0]].__path__
        spec = OwnModuleFinder().find_spec(name, path)
        standard = PathFinder.find_spec(name, path)
        assert standard is not None
        assert standard.origin is not None
        if spec is None:
            assert standard.submodule_search_locations is not None or standard.origin.endswith(".so")
            continue
        found += 1
        assert (spec.origin, spec.cached, spec.has_location) == (standard.origin, standard.cached, True)
        assert spec.submodule_search_locations is None
        assert type(spec.loader) is type(standard.loader)
    assert found > 10


def test_other_modules_are_left_to_the_standard_library(tmp_path: Path) -> None:
    finder = OwnModuleFinder()
    assert finder.find_spec("ophion") is None
    assert finder.find_spec("ophion.missing", [str(tmp_path)]) is None
    assert finder.find_spec("json.decoder", [str(Path(sys.modules["json"].__file__ or "").parent)]) is None


def test_a_finder_of_another_tool_comes_first() -> None:
    code = (
        "import sys; from ophion.runtime.bytecode_files import OwnModuleFinder, read_bytecode_directly\n"
        "class Tool:\n"
        "    def find_spec(self, name, *rest): print(name)\n"
        "sys.meta_path.insert(0, Tool()); read_bytecode_directly(); import ophion.primitives.rlp\n"
        "print([type(one).__name__ for one in sys.meta_path].index('OwnModuleFinder') > 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60)
    assert {"ophion.primitives.rlp", "True"} <= set(ran.stdout.split())
