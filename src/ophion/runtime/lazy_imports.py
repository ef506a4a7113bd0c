"""Leaves out modules that a start does not need, or loads them at first use.

Third-party packages import rarely used modules at the top of their files. Half of the modules that a start would load
are such modules.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import MappingProxyType, ModuleType
from typing import Any, Final

from ophion.runtime.bytecode_files import read_bytecode_directly
from ophion.runtime.garbage_collection import while_starting
from ophion.runtime.inspect_replacement import INSPECTIONS
from ophion.runtime.interrupts import end_at_once, end_by_inherited_signals

_LOCK: Final = RLock()
"""One lock for all modules, because loading one module may load another."""


@contextmanager
def left_out(name: str, instead: ModuleType | None = None) -> Iterator[None]:
    """Context manager that hides or replaces a module while other modules are loaded. A module that is already loaded
    stays.
    """
    modules: dict[str, Any] = sys.modules
    if name in modules:
        yield
        return
    modules[name] = instead
    try:
        yield
    finally:
        modules.pop(name, None)


def load_later(names: Iterable[str], known: Mapping[str, Mapping[str, object]] = MappingProxyType({})) -> None:
    """Load these modules at first use of an attribute, not at import.

    `known` holds module attributes that other packages read at import. Reading these attributes does not load the
    module.

    The standard library's `LazyLoader` does the same. But in Python 3.11 it loads the module at a second import, and a
    second thread can see a half-loaded module.
    """
    sys.meta_path.insert(0, _Finder({name: known.get(name, {}) for name in names}))


class _Finder:
    def __init__(self, known: Mapping[str, Mapping[str, object]]) -> None:
        self._known = known

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in self._known else None
        if spec is not None:
            spec.loader = _Loader(spec.loader, self._known[name])  # type: ignore[assignment] # the loader has all methods that an import needs
        return spec


class _Loader:
    """Creates modules that load themselves later, with their own loader."""

    def __init__(self, loader: Any, known: Mapping[str, object]) -> None:
        self.loader = loader
        self._known = known

    def create_module(self, spec: ModuleSpec) -> None:
        """Use the default module creation."""

    def exec_module(self, module: ModuleType) -> None:
        """Execute nothing yet; the module loads itself at first use."""
        module.__dict__.update(self._known)
        module.__class__ = _Later


class _Later(ModuleType):
    """A module that loads itself at the first access to a missing attribute."""

    def __getattr__(self, name: str) -> Any:
        if name == "__path__" and self.__spec__ is not None and self.__spec__.submodule_search_locations is None:
            # `from module import name` also reads `__path__`, which only packages have
            raise AttributeError(name)
        with _LOCK:
            spec: Any = self.__spec__
            if isinstance(spec.loader, _Loader):
                # set the real loader first: if the import itself reads a missing name, this thread gets AttributeError
                # and does not import again
                self.__loader__ = spec.loader = spec.loader.loader
                spec.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
        return ModuleType.__getattribute__(self, name)


_LATER = (
    "asyncio.sslproto",
    "asyncio.staggered",
    "asyncio.trsock",
    "copy",
    "getpass",
    "gzip",
    "hashlib",
    "inspect",
    "ipaddress",
    "linecache",
    "locale",
    "msgspec.inspect",
    "msgspec.json",
    "msgspec.msgpack",
    "msgspec.toml",
    "msgspec.yaml",
    "ntpath",
    "platform",
    "subprocess",
    "textwrap",
    "tokenize",
    "urllib.parse",
)
"""Modules that load at their first use. The command starts faster, because it does not need these modules to start."""


def _quote_from_bytes(text: bytes, safe: str = "/") -> str:
    """Quote a path for a URL. `pathlib` reads this function at import and calls it only for `Path.as_uri`."""
    import urllib.parse

    urllib.parse.urlsplit  # noqa: B018 - loads the module, which replaces this function
    return urllib.parse.quote_from_bytes(text, safe)


_KNOWN = {
    "inspect": INSPECTIONS,
    "platform": {"system": lambda: os.uname().sysname},
    "subprocess": {"PIPE": -1, "STDOUT": -2, "DEVNULL": -3, "SubprocessError": OSError},
    "urllib.parse": {"quote_from_bytes": _quote_from_bytes},
}
"""Attributes that other modules read while the command starts. `uuid` reads the name of the system, asyncio and uvloop
read names of `subprocess`. uvloop raises that error only if a `preexec_fn` of its own subprocess fails; none is given.
"""


def prepare() -> None:
    """Prepare the interpreter of a command or a worker: signals, garbage collection, imports."""
    end_at_once()
    end_by_inherited_signals()
    while_starting()
    read_bytecode_directly()
    load_later(_LATER, _KNOWN)
    # msgspec works without typing_extensions, and the program starts faster without this import
    with left_out("typing_extensions"):
        import msgspec  # noqa: F401
