"""Reads the signature of a handler: the wire types of its parameters and result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from ophion.rpc.schema.caller import Caller
from ophion.rpc.schema.wire_types import WireType
from ophion.runtime.inspect_replacement import CO_VARARGS, iscoroutinefunction

REQUIRED: Final = object()
"""Marks a parameter without a default."""


class Parameter(Struct, frozen=True):
    """One positional parameter of a handler."""

    name: str
    wire: WireType
    default: Any = REQUIRED
    is_repeated: bool = False
    """Whether the parameter accepts any number of values (`*name` in the signature)."""


class Signature(Struct, frozen=True):
    """Wire types of a handler's parameters and result."""

    parameters: tuple[Parameter, ...]
    takes_caller: bool
    result: WireType
    nullable: bool
    may_wait: bool
    """Whether the handler can return an awaitable."""


def read_signature(name: str, function: Callable[..., Any]) -> Signature:
    """Read the annotations of a handler. Raises `TypeError` for a type without a wire format."""
    hints = get_type_hints(function, include_extras=True)
    parameters, takes_caller = _parameters(name, function, hints)
    result, nullable = _result(name, hints)
    may_wait = iscoroutinefunction(function) or _returns_awaitable(hints.get("return"))
    return Signature(parameters, takes_caller, result, nullable, may_wait)


def _parameters(
    name: str, function: Callable[..., Any], hints: Mapping[str, Any]
) -> tuple[tuple[Parameter, ...], bool]:
    code = function.__code__
    count = code.co_argcount + bool(code.co_flags & CO_VARARGS)
    names = code.co_varnames[1:count]
    given = function.__defaults__ or ()
    defaults = dict(zip(code.co_varnames[code.co_argcount - len(given) : code.co_argcount], given, strict=True))
    takes_caller = bool(names) and hints.get(names[0]) is Caller
    parameters = []
    for one in names[1:] if takes_caller else names:
        wire = _wire(hints.get(one))
        if wire is None or wire.decode is None:
            raise TypeError(f"{name}: parameter {one} has no wire type that can be read")
        is_repeated = one == code.co_varnames[code.co_argcount] if count > code.co_argcount else False
        parameters.append(Parameter(_camel(one), wire, () if is_repeated else defaults.get(one, REQUIRED), is_repeated))
    if len(parameters) > 1 and any(parameter.is_repeated for parameter in parameters):
        raise TypeError(f"{name}: a repeated parameter must be the only one")
    return tuple(parameters), takes_caller


def _result(name: str, hints: Mapping[str, Any]) -> tuple[WireType, bool]:
    alternatives = _alternatives(hints.get("return"))
    wires = {wire.name: wire for alternative in alternatives if (wire := _wire(alternative)) is not None}
    if len(wires) != 1 or next(iter(wires.values())).encode is None:
        raise TypeError(f"{name}: the result needs exactly one wire type that can be written")
    return next(iter(wires.values())), type(None) in alternatives


def _alternatives(hint: Any) -> list[Any]:
    """List the types of a union, also inside awaitables: `X | None | Awaitable[X | None]` gives X and None."""
    if get_origin(hint) in (Union, UnionType):
        return [member for argument in get_args(hint) for member in _alternatives(argument)]
    if get_origin(hint) is Awaitable:
        return _alternatives(get_args(hint)[0])
    return [hint]


def _returns_awaitable(hint: Any) -> bool:
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return any(get_origin(member) is Awaitable for member in members)


def _wire(hint: Any) -> WireType | None:
    for member in _alternatives(hint):
        if get_origin(member) is Annotated:
            for extra in member.__metadata__:
                if isinstance(extra, WireType):
                    return extra
    return None


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)
