"""Permissions: `group:method` entries, and what they leave of a method table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from ophion.rpc.errors import UNAUTHORIZED
from ophion.rpc.schema.registry import BoundMethod, MethodTable

EVERYTHING: Final = "*:*"


def entries_for(method: str) -> tuple[str, str, str]:
    """The entries that permit a method: `*:*`, `eth:*` and `eth:blockNumber` for `eth_blockNumber`."""
    group, _, name = method.replace(".", "_", 1).partition("_")
    return EVERYTHING, f"{group}:*", f"{group}:{name}"


def allows(permissions: Collection[str], method: str) -> bool:
    """Whether one of the entries permits a method; entries are compared exactly, case included."""
    return any(entry in permissions for entry in entries_for(method))


def permitted_table(table: MethodTable, permissions: Collection[str], exempt: Iterable[str] = ()) -> MethodTable:
    """The same names with `Unauthorized` in place of what is not permitted.

    A method may be called by an alias where its own name is permitted. What is not enabled stays so: clients are told
    that before they are told that they may not (json-rpc.md 1.11). `exempt` methods are open to everybody.
    """
    free = frozenset(exempt)
    return table.map(lambda name, bound: bound if _is_open(name, bound, permissions, free) else _REFUSED)


class RefusingTable(dict[str, BoundMethod]):
    """Methods for those who have no good token: whatever else they name is refused alike, whether it exists or not."""

    def __missing__(self, name: object) -> BoundMethod:
        if type(name) is not str:
            raise KeyError(name)
        return _REFUSED

    def get(self, name: str, default: Any = None) -> BoundMethod:
        return self[name]


def refusing_table(table: MethodTable, exempt: Iterable[str]) -> RefusingTable:
    """The methods that are open to everybody, and `Unauthorized` for any other name."""
    return RefusingTable({name: table[name] for name in exempt if name in table.names})


def _is_open(name: str, bound: BoundMethod, permissions: Collection[str], exempt: frozenset[str]) -> bool:
    if not bound.name:
        return True  # bound to the answer that it is not enabled
    return name in exempt or allows(permissions, name) or allows(permissions, bound.name)


def _refuse(params: Sequence[Any], caller: Any) -> Any:
    raise UNAUTHORIZED()


_REFUSED: Final = BoundMethod(_refuse, bytes, False, "unauthorized")
