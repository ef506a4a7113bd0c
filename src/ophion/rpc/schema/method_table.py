"""The method table of one transport: methods bound to a context.

Names of known methods that the transport does not offer are bound to the -32604 error. So the dispatcher needs one
dictionary lookup and no group check. A method is bound at its first call, because binding all methods took a tenth of a
node's start.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from ophion.errors import OphionError
from ophion.native.executor import LatestRead
from ophion.pool.events import Admission
from ophion.pool.intake import Arrival
from ophion.rpc.errors import METHOD_NOT_ENABLED
from ophion.rpc.schema.compiler import DecodeParams, Invoke, compile_invoke, compile_steps
from ophion.rpc.schema.method import WEBSOCKET, MethodSpec
from ophion.rpc.schema.wire_types import optional

SubmitTransaction: TypeAlias = Callable[[Arrival[list[Admission]]], None]
"""Passes an `Arrival` with a raw transaction to the pool. The pool resolves the arrival later."""


class ServiceContext(Protocol):
    """The part of `RpcContext` that binding a method needs: available services and native fast paths."""

    def provides(self, service: str) -> bool: ...
    def latest_read(self, name: str) -> LatestRead: ...
    @property
    def submit(self) -> SubmitTransaction: ...


class BoundMethod(NamedTuple):
    """A method bound to the services of one transport: functions that decode, call and encode."""

    invoke: Invoke
    encode: Callable[[Any], bytes]
    may_wait: bool
    name: str
    decode: DecodeParams | None = None
    """The first step of `invoke`, which may run in any thread; None if there are no parameters to decode."""
    call: Invoke = lambda values, caller: None
    """The second step of `invoke`, called with the result of `decode`."""
    latest_read: LatestRead | None = None
    """Fast path for plain requests at the latest block (rpc/dispatch/fast_path.py)."""
    submit: SubmitTransaction | None = None
    """Fast path for methods that send a raw transaction (rpc/dispatch/fast_path.py)."""
    has_timeout: bool = True
    """Whether the request timeout applies."""
    wire_name: str = ""
    """The name or alias in the request, in the table of a worker, which may forward the request
    (node/rpc_workers/worker_dispatcher.py).
    """


class MethodTable(dict[str, BoundMethod]):
    """The methods of one transport by name. A known method that the transport does not offer is bound to an error.

    Each method is bound when its name is first looked up.
    """

    def __init__(self, names: Collection[str], make: Callable[[str], BoundMethod]) -> None:
        super().__init__()
        self.names = names
        self._make = make
        self.on_unknown: Callable[[], None] | None = None
        """Called when a client asks for an unknown method."""

    @classmethod
    def of(cls, bounds: Mapping[str, BoundMethod]) -> MethodTable:
        """Make a table of methods that are already bound."""
        return cls(bounds.keys(), bounds.__getitem__)

    def __missing__(self, name: str) -> BoundMethod:
        if name not in self.names:
            if self.on_unknown is not None:
                self.on_unknown()
            raise KeyError(name)
        bound = self[name] = self._make(name)
        return bound

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def map(self, change: Callable[[str, BoundMethod], BoundMethod]) -> MethodTable:
        """Return a table with the same names. `change` replaces each method when the method is bound."""
        table = MethodTable(self.names, lambda name: change(name, self[name]))
        table.on_unknown = self.on_unknown
        return table


def bind(name: str, spec: MethodSpec, context: ServiceContext, groups: Collection[str], transport: str) -> BoundMethod:
    """Bind one name of a method to its handler, or to an error if this transport does not offer the method."""
    if is_enabled(spec, context, groups, transport):
        bound = _bound(spec, context)
        return bound if spec.alias_error is None or name == spec.name else _with_errors(bound, spec.alias_error)
    if spec.without is not None and is_offered(spec, groups, transport):
        return _refusing(spec.name, spec.without)
    return _NOT_ENABLED


def is_enabled(spec: MethodSpec, context: ServiceContext, groups: Collection[str], transport: str) -> bool:
    """Whether a transport offers a method.

    `rpc_*` is enabled with any group. WebSocket always offers `eth_subscribe` (json-rpc.md 1.10).
    """
    return all(context.provides(service) for service in spec.needs) and is_offered(spec, groups, transport)


def is_offered(spec: MethodSpec, groups: Collection[str], transport: str) -> bool:
    """Whether a transport offers a method if all services that the method needs exist."""
    if transport not in spec.transports:
        return False
    if spec.transports == {WEBSOCKET} and spec.group == "eth":
        return True
    return bool(groups) if spec.group == "rpc" else spec.group in groups


def _bound(spec: MethodSpec, context: ServiceContext) -> BoundMethod:
    signature = spec.signature
    encode = signature.result.encode
    assert encode is not None, spec.name
    decode, call = compile_steps(spec, context)
    encoder = optional(encode) if signature.nullable else encode
    latest_read = None if spec.latest_read is None else context.latest_read(spec.latest_read)
    submit = context.submit if spec.sends_raw_transaction else None
    invoke = compile_invoke(spec, context)
    return BoundMethod(
        invoke, encoder, signature.may_wait, spec.name, decode, call, latest_read, submit, spec.has_timeout
    )


def _with_errors(bound: BoundMethod, reword: Callable[[OphionError], OphionError]) -> BoundMethod:
    """Return the method with each error replaced by `reword(error)`."""

    async def awaited(result: Awaitable[Any]) -> Any:
        try:
            return await result
        except OphionError as error:
            raise reword(error) from None

    def wrapped(function: Invoke) -> Invoke:
        def invoke(values: Sequence[Any], caller: Any) -> Any:
            try:
                result = function(values, caller)
            except OphionError as error:
                raise reword(error) from None
            return awaited(result) if inspect.isawaitable(result) else result

        return invoke

    return bound._replace(invoke=wrapped(bound.invoke), call=wrapped(bound.call), submit=None)


def _refusing(name: str, error: Callable[[], Exception]) -> BoundMethod:
    def refuse(params: Sequence[Any], caller: Any) -> Any:
        raise error()

    return BoundMethod(refuse, bytes, False, name)


_NOT_ENABLED: Final = _refusing("", METHOD_NOT_ENABLED)
