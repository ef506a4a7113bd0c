"""The `@method` decorator, which declares a JSON-RPC method, and the `MethodSpec` that it makes.

    @method("eth_getBalance", needs={"chain", "state"})
    def get_balance(ctx: RpcContext, address: AddressParam, block: BlockParam = BlockTag.LATEST) -> Quantity:
        '''Balance of an account in wei at a block.'''

Dispatch, API groups, `rpc_modules`, `rpc.discover` and the pages in docs/rpc know a method only by its `MethodSpec`. A
handler that answers immediately is a plain function. A handler that may wait is a coroutine function or returns an
awaitable.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Struct

from ophion.errors import OphionError
from ophion.rpc.schema.caller import Caller
from ophion.rpc.schema.signature import Signature, read_signature

HTTP: Final = "http"
WEBSOCKET: Final = "ws"

Handler: TypeAlias = Callable[..., Any]

F = TypeVar("F", bound=Handler)


def group_of(name: str) -> str:
    """Return the API group of a method: the part of its name before the first `_` or `.`."""
    return name.replace(".", "_").partition("_")[0]


def client_of(caller: Caller | None) -> str:
    """Return the client's user name or IP address; empty for a request without a connection."""
    return "" if caller is None else caller.client


class Example(Struct, frozen=True):
    """A literal request and its result. The documentation shows the example, and a test runs it on the sample chain."""

    params: Sequence[Any]
    result: Any


class MethodSpec(Struct, frozen=True, dict=True):
    """The declaration of one RPC method: names, handler and needed services."""

    name: str
    function: Handler
    aliases: tuple[str, ...]
    needs: frozenset[str]
    exact_count: bool
    transports: frozenset[str]
    examples: tuple[Example, ...]
    without: Callable[[], Exception] | None = None
    """Creates the error for a missing service. If None, a missing service disables the method."""
    alias_error: Callable[[OphionError], OphionError] | None = None
    """Rewords an error if the client has called the method by an alias."""
    latest_read: str | None = None
    """Name of the Rust function that may answer plain requests at the latest block (rpc/dispatch/fast_path.py)."""
    sends_raw_transaction: bool = False
    """Whether the only parameter is a raw transaction for the pool and the result is its hash
    (rpc/dispatch/fast_path.py).
    """
    has_timeout: bool = True
    """Whether the request timeout applies; cheat codes that mine many blocks may take longer."""
    also: tuple[MethodSpec, ...] = ()
    """Further declarations of the same handler, for methods in several groups."""

    @cached_property
    def signature(self) -> Signature:
        """The wire types of parameters and result, read at first use. Raises `TypeError` for a type without a wire
        format.
        """
        return read_signature(self.name, self.function)

    @property
    def summary(self) -> str:
        """The first line of the handler's docstring, which describes the method in the documentation."""
        return inspect.cleandoc(self.function.__doc__ or "").partition("\n")[0]

    @property
    def description(self) -> str:
        """The handler's docstring without its first line."""
        return inspect.cleandoc(self.function.__doc__ or "").partition("\n")[2].strip()

    @property
    def group(self) -> str:
        """The API group that enables the method."""
        return group_of(self.name)

    @property
    def names(self) -> tuple[str, ...]:
        """The wire name and its aliases."""
        return (self.name, *self.aliases)


def method(
    name: str,
    *,
    aliases: Sequence[str] = (),
    needs: Collection[str] = (),
    exact_count: bool = False,
    transports: Collection[str] = (HTTP, WEBSOCKET),
    examples: Sequence[Example] = (),
    without: Callable[[], Exception] | None = None,
    alias_error: Callable[[OphionError], OphionError] | None = None,
    latest_read: str | None = None,
    sends_raw_transaction: bool = False,
    has_timeout: bool = True,
) -> Callable[[F], F]:
    """Declare a handler under its literal wire name.

    Stacked decorators declare the same handler under several names, each in its own group. `needs` names services of
    the context. If a service is missing, the method is disabled, or fails with the error of `without`. `exact_count`
    rejects surplus parameters, which are ignored otherwise (json-rpc.md 1.2). `MethodSpec` explains `alias_error`,
    `latest_read`, `sends_raw_transaction` and `has_timeout`.
    """

    def declare(function: F) -> F:
        function.__rpc__ = MethodSpec(  # type: ignore[attr-defined]
            name=name,
            function=function,
            aliases=tuple(aliases),
            needs=frozenset(needs),
            exact_count=exact_count,
            transports=frozenset(transports),
            examples=tuple(examples),
            without=without,
            alias_error=alias_error,
            latest_read=latest_read,
            sends_raw_transaction=sends_raw_transaction,
            has_timeout=has_timeout,
            also=declarations_of(function),
        )
        return function

    return declare


def declarations_of(function: Handler) -> tuple[MethodSpec, ...]:
    """Return every declaration that decorators have attached to a function."""
    spec: MethodSpec | None = getattr(function, "__rpc__", None)
    return () if spec is None else (spec, *spec.also)


def group_names(specs: Iterable[MethodSpec]) -> Mapping[str, list[MethodSpec]]:
    """Return the method specs by API group, in the given order."""
    groups: dict[str, list[MethodSpec]] = {}
    for spec in specs:
        groups.setdefault(spec.group, []).append(spec)
    return groups
