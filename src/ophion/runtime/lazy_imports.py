"""What others load and a start does not need: left out, or left for later.

Packages import at their top what they use in a corner. Where nobody comes to that corner the module behind it is work
for nothing: half of what a start loads is not ours.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Any, Final

_LOCK: Final = RLock()
"""One for all: whoever loads one of these modules may need another."""


@contextmanager
def left_out(name: str, instead: ModuleType | None = None) -> Iterator[None]:
    """While others are loaded a module is not there, or is another; one that is loaded already stays what it is."""
    modules: dict[str, Any] = sys.modules
    if name in modules:
        yield
        return
    modules[name] = instead
    try:
        yield
    finally:
        modules.pop(name, None)


def load_later(names: Iterable[str]) -> None:
    """From now on these modules are loaded when something in them is used, not when they are imported.

    That is what `LazyLoader` of the standard library is for; but there, in Python 3.11, a second import is use already,
    and a second thread finds a module that is half there.
    """
    sys.meta_path.insert(0, _Finder(frozenset(names)))


class _Finder:
    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name in self._names else None
        if spec is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment] # it has all that the import needs
        return spec


class _Loader:
    """Makes modules that load themselves with another one."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> None:
        """A module as any other."""

    def exec_module(self, module: ModuleType) -> None:
        """Not yet."""
        module.__class__ = _Later


class _Later(ModuleType):
    """A module until somebody asks for what is not there yet."""

    def __getattr__(self, name: str) -> Any:
        with _LOCK:
            spec: Any = self.__spec__
            if isinstance(spec.loader, _Loader):
                # from here on this thread is told the truth about what is not there, and others wait
                self.__loader__ = spec.loader = spec.loader.loader
                spec.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]
        return ModuleType.__getattribute__(self, name)
