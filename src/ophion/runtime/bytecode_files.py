"""Finds own modules, and reads the bytecode of all modules, with fewer steps than the standard library.

A start imports 440 modules. For each, the standard library opens a buffered file and builds values that only an import
from source code needs. This module makes the same checks and reads the file with one call. It leaves every other case
to the standard library: no bytecode, stale bytecode, bytecode that is checked by its hash, other loaders.

The finder looks for a source file in the folder of the package. It leaves packages, the extension, and modules that do
not exist to the standard library.
"""

from __future__ import annotations

import _imp
import marshal
import os
import sys
from collections.abc import Sequence
from importlib._bootstrap_external import MAGIC_NUMBER, cache_from_source, spec_from_file_location
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Final

_CHECKED_BY_TIME: Final = MAGIC_NUMBER + bytes(4)
"""Begin of a bytecode file that is valid for the modification time and size of its source file (PEP 552)."""
_HEADER_BYTES: Final = 16
_OWN: Final = "ophion."
_standard_get_code: Final = SourceFileLoader.get_code


def read_bytecode_directly() -> None:
    """Use the finder and the function `get_code` of this module for all imports from now on."""
    SourceFileLoader.get_code = get_code  # type: ignore[assignment,method-assign]
    # finders before the one of the standard library, such as those of tools, keep their place
    if PathFinder in sys.meta_path:
        sys.meta_path.insert(sys.meta_path.index(PathFinder), OwnModuleFinder())


class OwnModuleFinder:
    """Finds the modules of this package."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module with a source file, otherwise None."""
        if path is None or not name.startswith(_OWN):
            return None
        file = f"{path[0]}/{name.rpartition('.')[2]}.py"
        try:
            os.stat(file)
        except OSError:
            return None
        return spec_from_file_location(name, file, loader=SourceFileLoader(name, file), submodule_search_locations=None)


def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
    """Return the code of a module. The slow path is that of the standard library; both must agree
    (tests/unit/runtime/test_bytecode_files.py).
    """
    found = _cached(loader.path) if type(loader) is SourceFileLoader else None
    return _standard_get_code(loader, name) if found is None else found


def _cached(path: str) -> CodeType | None:
    """Return the code in the bytecode file of a source file, or None if that file is not valid."""
    try:
        source = os.stat(path)
        content = _read(cache_from_source(path))
    except (OSError, NotImplementedError):
        return None
    if content[:_HEADER_BYTES] != _CHECKED_BY_TIME + _number(int(source.st_mtime)) + _number(source.st_size):
        return None
    try:
        code = marshal.loads(memoryview(content)[_HEADER_BYTES:])
    except (EOFError, ValueError, TypeError):
        return None
    if not isinstance(code, CodeType):
        return None
    _imp._fix_co_filename(code, path)  # type: ignore[attr-defined]  # as the standard library does
    return code


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def _number(value: int) -> bytes:
    return (value & 0xFFFFFFFF).to_bytes(4, "little")
