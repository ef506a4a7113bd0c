"""`Registry`: every method of the node, loaded from its file at the first use.

This module is also the import surface for method files and for users of the method table:

method.py         declare a method: `@method`, `MethodSpec`
signature.py      read the types of a handler
compiler.py       compile a signature into a function
method_table.py   bind methods to the services and groups of one transport

Most nodes need few of the methods. A method file (`MethodFile`) is imported when a client first calls a method of its
group. A signature is read at the first call of its method; the tests read all signatures.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Final

from msgspec import Struct

from ophion.rpc.schema.caller import Caller, NotifiedCaller
from ophion.rpc.schema.compiler import Invoke
from ophion.rpc.schema.method import (
    HTTP,
    WEBSOCKET,
    Example,
    MethodSpec,
    client_of,
    declarations_of,
    group_names,
    group_of,
    method,
)
from ophion.rpc.schema.method_table import (
    BoundMethod,
    MethodTable,
    ServiceContext,
    SubmitTransaction,
    bind,
    is_enabled,
)
from ophion.rpc.schema.signature import REQUIRED, Parameter

__all__ = [
    "HTTP",
    "REQUIRED",
    "WEBSOCKET",
    "BoundMethod",
    "Caller",
    "Example",
    "Invoke",
    "MethodFile",
    "MethodSpec",
    "MethodTable",
    "NotifiedCaller",
    "Parameter",
    "Registry",
    "SubmitTransaction",
    "client_of",
    "group_names",
    "group_of",
    "is_enabled",
    "method",
]


CHEAT_CODES: Final = "dev"
"""Name under which handlers need the development node (`needs={"dev"}`). Only development nodes have this service."""


class MethodFile(Struct, frozen=True):
    """A module of methods that is not imported yet."""

    module: str
    groups: tuple[str, ...]
    """API groups of the methods in the file."""


class Registry:
    """All methods of the node, by wire name."""

    def __init__(self, specs: Iterable[MethodSpec] = (), files: Iterable[MethodFile] = ()) -> None:
        self._by_name: dict[str, MethodSpec] = {}
        self._files = list(files)
        self._add(specs)

    @classmethod
    def of(cls, modules: Iterable[ModuleType]) -> Registry:
        """Return a registry of the handlers in these modules that have the `@method` decorator."""
        return cls(spec for module in modules for spec in _specs_in(module))

    @property
    def specs(self) -> tuple[MethodSpec, ...]:
        """Return every method, sorted by name. Imports all method files."""
        while self._files:
            self._load(self._files[0])
        by_name = {spec.name: spec for spec in self._by_name.values()}
        return tuple(by_name[name] for name in sorted(by_name))

    def knows(self, name: str) -> bool:
        """Return whether a method exists. Imports files of its group until the name is found."""
        while name not in self._by_name:
            if not self.load_more(group_of(name)):
                return False
        return True

    def spec(self, name: str) -> MethodSpec:
        """Return the declaration of the method with this name. The name must be known."""
        return self._by_name[name]

    def load_more(self, group: str) -> bool:
        """Import the next file with methods of a group. Returns False when all are imported."""
        file = next((file for file in self._files if group in file.groups), None)
        if file is not None:
            self._load(file)
        return file is not None

    def bind(self, context: ServiceContext, groups: Collection[str], transport: str) -> MethodTable:
        """Return the method table of one transport: every known name, whether offered or not."""
        return MethodTable(
            _Names(self, context), lambda name: bind(name, self._by_name[name], context, groups, transport)
        )

    def _load(self, file: MethodFile) -> None:
        self._files.remove(file)
        self._add(_specs_in(import_module(file.module)))

    def _add(self, specs: Iterable[MethodSpec]) -> None:
        for spec in specs:
            for name in spec.names:
                if name in self._by_name:
                    raise TypeError(f"two methods are called {name}")
                self._by_name[name] = spec


def _specs_in(module: ModuleType) -> Iterator[MethodSpec]:
    for member in vars(module).values():
        if hasattr(member, "__rpc__") and member.__module__ == module.__name__:
            yield from declarations_of(member)


class _Names(Collection[str]):
    """The method names that a node knows. A membership test imports only as many method files as it needs.

    Only a development node knows the names of cheat codes, because tools take a node with these names for Anvil or
    Hardhat's node.
    """

    def __init__(self, registry: Registry, context: ServiceContext) -> None:
        self._registry = registry
        self._has_cheat_codes = context.provides(CHEAT_CODES)

    def __contains__(self, name: object) -> bool:
        registry = self._registry
        return isinstance(name, str) and registry.knows(name) and self._is_known(registry.spec(name))

    def __iter__(self) -> Iterator[str]:
        return (name for spec in self._registry.specs if self._is_known(spec) for name in spec.names)

    def _is_known(self, spec: MethodSpec) -> bool:
        return self._has_cheat_codes or CHEAT_CODES not in spec.needs

    def __len__(self) -> int:
        return sum(1 for _ in self)
