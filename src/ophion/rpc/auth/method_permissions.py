"""Permissions: `group:method` entries, and the method table they permit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from ophion.rpc.errors import UNAUTHORIZED
from ophion.rpc.schema.registry import BoundMethod, MethodTable

EVERYTHING: Final = "*:*"


def entries_for(method: str) -> tuple[str, str, str]:
    """Return the entries that permit a method: `*:*`, `eth:*` and `eth:blockNumber` for `eth_blockNumber`."""
    group, _, name = method.replace(".", "_", 1).partition("_")
    return EVERYTHING, f"{group}:*", f"{group}:{name}"


def allows(permissions: Collection[str], method: str) -> bool:
    """Return whether one of the permissions covers a method. Permissions are case-sensitive."""
    return any(entry in permissions for entry in entries_for(method))


def permitted_table(table: MethodTable, permissions: Collection[str], exempt: Iterable[str] = ()) -> MethodTable:
    """Return the table with `Unauthorized` in place of methods that are not permitted.

    An alias is permitted if the method's own name is permitted. A method that is not enabled keeps its
    own error, permitted or not (json-rpc.md 1.11). `exempt` methods need no permission.
    """
    free = frozenset(exempt)
    return table.map(lambda name, bound: bound if _is_open(name, bound, permissions, free) else _REFUSED)


class UnauthorizedMethodTable(dict[str, BoundMethod]):
    """Method table for requests without a valid token. All names except exempt methods get the same error."""

    def __missing__(self, name: object) -> BoundMethod:
        if type(name) is not str:
            raise KeyError(name)
        return _REFUSED

    def get(self, name: str, default: Any = None) -> BoundMethod:
        return self[name]


def refusing_table(table: MethodTable, exempt: Iterable[str]) -> UnauthorizedMethodTable:
    """Return a method table with only the exempt methods. Every other method name gets the error `Unauthorized`."""
    return UnauthorizedMethodTable({name: table[name] for name in exempt if name in table.names})


def _is_open(name: str, bound: BoundMethod, permissions: Collection[str], exempt: frozenset[str]) -> bool:
    if not bound.name:
        return True  # permit a disabled method, because it returns its own error
    return name in exempt or allows(permissions, name) or allows(permissions, bound.name)


def _refuse(params: Sequence[Any], caller: Any) -> Any:
    raise UNAUTHORIZED()


_REFUSED: Final = BoundMethod(_refuse, bytes, False, "unauthorized")
