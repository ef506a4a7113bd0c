"""Methods, declared once.

    @method("eth_getBalance", needs={"chain", "state"})
    def get_balance(ctx: RpcContext, address: AddressParam, block: BlockParam = BlockTag.LATEST) -> Quantity:
        '''Balance of an account in wei at a block.'''

The `MethodSpec` that the decorator makes is all that dispatch, group control, `rpc_modules`, `rpc.discover` and the
pages in docs/rpc know about a method. A handler is a plain function where it can answer at once, and a coroutine
function (or a function that returns an awaitable) where it may have to wait.

`Registry.bind` turns specs into the method table of one transport: names that are known but not offered there are in
the table too, bound to the -32604 answer, so the dispatcher does one dictionary lookup and no group check.

Signatures are read, and methods bound, when somebody first calls them: all of them together took a tenth of the time in
which a node starts. A parameter without a wire type fails there, and in the tests, which read them all. The files of
the methods themselves are loaded when somebody first calls into them (`Topic`): most nodes never need most of them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from types import ModuleType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct

from ophion.errors import OphionError
from ophion.native.executor import NewestRead
from ophion.pool.events import Admission
from ophion.pool.intake import Arrival
from ophion.rpc.errors import METHOD_NOT_ENABLED, invalid_params
from ophion.rpc.schema.wire_types import Wire, optional

HTTP: Final = "http"
WEBSOCKET: Final = "ws"
_CHEAT_CODES: Final = "dev"
REQUIRED: Final = inspect.Parameter.empty

Handler: TypeAlias = Callable[..., Any]
Invoke: TypeAlias = Callable[[Sequence[Any], Any], Any]
"""Called with the decoded `params` array and the caller; gives a value or an awaitable of one."""
Bring: TypeAlias = Callable[[Arrival[list[Admission]]], None]
"""Called with a transaction that somebody sends; gives nothing, and tells the arrival later."""

F = TypeVar("F", bound=Handler)


class Caller(Protocol):
    """The connection a request came over, for the few methods that must know who asks."""

    @property
    def client(self) -> str:
        """Who asks: the name of a token, or the address of a machine."""


class Listener(Caller, Protocol):
    """A connection that can be talked to later."""

    def notify(self, message: bytes) -> None:
        """Queue a message to the client; a client that does not read is cut off."""


def group_of(name: str) -> str:
    """The part of a wire name before the first `_` or `.`."""
    return name.replace(".", "_").partition("_")[0]


def client_of(caller: Caller | None) -> str:
    """Who asks; nobody in particular where a request came over no connection."""
    return "" if caller is None else caller.client


class Services(Protocol):
    """What `bind` must know about a context: which services are there, and what answers without a handler."""

    def provides(self, service: str) -> bool: ...
    def at_newest(self, question: str) -> NewestRead: ...
    @property
    def bring(self) -> Bring: ...


class Example(Struct, frozen=True):
    """A literal request and its answer: shown in the documentation and run as a test on the sample chain."""

    params: Sequence[Any]
    result: Any


class Parameter(Struct, frozen=True):
    """One positional parameter."""

    name: str
    wire: Wire
    default: Any = REQUIRED
    is_repeated: bool = False
    """Takes every position, however many are given (`*name` in the signature)."""


class Signature(Struct, frozen=True):
    """What the annotations of a handler say."""

    parameters: tuple[Parameter, ...]
    takes_caller: bool
    result: Wire
    nullable: bool
    may_wait: bool
    """Whether the handler can give an awaitable; the others are spared the question."""


class MethodSpec(Struct, frozen=True, dict=True):
    """Everything there is to know about a method."""

    name: str
    function: Handler
    aliases: tuple[str, ...]
    needs: frozenset[str]
    exact_count: bool
    transports: frozenset[str]
    examples: tuple[Example, ...]
    without: Callable[[], Exception] | None = None
    """The answer where a service is absent, instead of "not enabled"; whatever the parameters are."""
    alias_words: Callable[[OphionError], OphionError] | None = None
    """What an error is under an alias, where texts came with the name; None where they are the same."""
    newest: str | None = None
    """What the extension is asked for where a usual request reads at the newest block; the handler answers others."""
    brings: bool = False
    """Whether the one parameter is a transaction for the pool, and the answer its hash."""
    also: tuple[MethodSpec, ...] = ()
    """Further declarations of the same handler, for methods of several groups that do the same."""

    @cached_property
    def signature(self) -> Signature:
        """Parameters and result; `TypeError` where they cannot be read or written."""
        hints = get_type_hints(self.function, include_extras=True)
        parameters, takes_caller = _parameters(self.name, self.function, hints)
        result, nullable = _result(self.name, hints)
        may_wait = inspect.iscoroutinefunction(self.function) or _gives_awaitable(hints.get("return"))
        return Signature(parameters, takes_caller, result, nullable, may_wait)

    @property
    def summary(self) -> str:
        """The first line of the handler's documentation."""
        return inspect.cleandoc(self.function.__doc__ or "").partition("\n")[0]

    @property
    def description(self) -> str:
        """The rest of it."""
        return inspect.cleandoc(self.function.__doc__ or "").partition("\n")[2].strip()

    @property
    def group(self) -> str:
        """The group that switches the method on."""
        return group_of(self.name)

    @property
    def names(self) -> tuple[str, ...]:
        """The wire name and its aliases."""
        return (self.name, *self.aliases)


class Bound(NamedTuple):
    """A method ready to be called on one transport."""

    invoke: Invoke
    encode: Callable[[Any], bytes]
    may_wait: bool
    name: str
    decode: Callable[[Sequence[Any]], Sequence[Any]] | None = None
    """The first half of `invoke`, which may run in any thread; None where there is nothing to decode."""
    call: Invoke = lambda values, caller: None
    """The second half: called with what `decode` gave."""
    newest: NewestRead | None = None
    """What may answer in place of `invoke` where a usual request reads at the newest block."""
    bring: Bring | None = None
    """What takes the transaction of a usual request in place of `invoke`, where the method sends one."""


def method(
    name: str,
    *,
    aliases: Sequence[str] = (),
    needs: Collection[str] = (),
    exact_count: bool = False,
    transports: Collection[str] = (HTTP, WEBSOCKET),
    examples: Sequence[Example] = (),
    without: Callable[[], Exception] | None = None,
    alias_words: Callable[[OphionError], OphionError] | None = None,
    newest: str | None = None,
    brings: bool = False,
) -> Callable[[F], F]:
    """Declare a handler under its literal wire name.

    Decorators can be stacked: the handler then answers under each name, each in its own group.
    `needs` names the services of the context the method works with; where one is absent the method is not enabled,
    or answers with the error `without`.
    `exact_count` refuses surplus parameters, which are ignored otherwise (json-rpc.md 1.2).
    `alias_words` turns an error into the one that is told to whoever called by an alias.
    `newest` names what `NewestBlock` answers by itself, in the same words as the handler would.
    `brings`: the handler does nothing but put a transaction into the pool, and the dispatcher may do it by itself.
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
            alias_words=alias_words,
            newest=newest,
            brings=brings,
            also=_declarations(function),
        )
        return function

    return declare


def _declarations(function: Handler) -> tuple[MethodSpec, ...]:
    """All that decorators have said about a function so far."""
    spec: MethodSpec | None = getattr(function, "__rpc__", None)
    return () if spec is None else (spec, *spec.also)


class MethodTable(dict[str, Bound]):
    """Every known name of one transport; what stands behind it is made when it is first asked for."""

    def __init__(self, names: Collection[str], make: Callable[[str], Bound]) -> None:
        super().__init__()
        self.names = names
        self._make = make
        self.missed: Callable[[], None] | None = None
        """Called when somebody wants a method that nobody knows."""

    @classmethod
    def of(cls, bounds: Mapping[str, Bound]) -> MethodTable:
        """What is bound already."""
        return cls(bounds.keys(), bounds.__getitem__)

    def __missing__(self, name: str) -> Bound:
        if name not in self.names:
            if self.missed is not None:
                self.missed()
            raise KeyError(name)
        bound = self[name] = self._make(name)
        return bound

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default

    def changed(self, change: Callable[[str, Bound], Bound]) -> MethodTable:
        """The same names, and what `change` makes of each."""
        changed = MethodTable(self.names, lambda name: change(name, self[name]))
        changed.missed = self.missed
        return changed


class Topic(Struct, frozen=True):
    """A module of methods that is not loaded yet."""

    module: str
    groups: tuple[str, ...]
    """The groups that its methods belong to."""


class Registry:
    """All methods of the node, by wire name."""

    def __init__(self, specs: Iterable[MethodSpec] = (), topics: Iterable[Topic] = ()) -> None:
        self._by_name: dict[str, MethodSpec] = {}
        self._topics = list(topics)
        self._add(specs)

    @classmethod
    def of(cls, modules: Iterable[ModuleType]) -> Registry:
        """Every decorated function of these modules."""
        return cls(spec for module in modules for spec in _specs_in(module))

    @property
    def specs(self) -> tuple[MethodSpec, ...]:
        """Every method, in the order of names."""
        while self._topics:
            self._load(self._topics[0])
        by_name = {spec.name: spec for spec in self._by_name.values()}
        return tuple(by_name[name] for name in sorted(by_name))

    def knows(self, name: str) -> bool:
        """Whether there is such a method, in a module that is loaded or one to be loaded now."""
        while name not in self._by_name:
            if not self.load_more(group_of(name)):
                return False
        return True

    def load_more(self, group: str) -> bool:
        """Load the next module with methods of a group; False where all of them are there."""
        topic = next((topic for topic in self._topics if group in topic.groups), None)
        if topic is not None:
            self._load(topic)
        return topic is not None

    def bind(self, context: Services, groups: Collection[str], transport: str) -> MethodTable:
        """The method table of one transport: every known name, offered or not."""
        return MethodTable(_Names(self), lambda name: self._bind(name, context, groups, transport))

    def _load(self, topic: Topic) -> None:
        self._topics.remove(topic)
        self._add(_specs_in(import_module(topic.module)))

    def _add(self, specs: Iterable[MethodSpec]) -> None:
        for spec in specs:
            for name in spec.names:
                if name in self._by_name:
                    raise TypeError(f"two methods are called {name}")
                self._by_name[name] = spec

    def _bind(self, name: str, context: Services, groups: Collection[str], transport: str) -> Bound:
        spec = self._by_name[name]
        if _CHEAT_CODES in spec.needs and not context.provides(_CHEAT_CODES):
            # tools probe for other clients by these names: elsewhere they are as unknown as any
            raise KeyError(name)
        if is_enabled(spec, context, groups, transport):
            bound = _bound(spec, context)
            return bound if spec.alias_words is None or name == spec.name else _reworded(bound, spec.alias_words)
        if spec.without is not None and is_offered(spec, groups, transport):
            return _refused(spec, spec.without)
        return _NOT_ENABLED


def _specs_in(module: ModuleType) -> Iterator[MethodSpec]:
    for member in vars(module).values():
        if hasattr(member, "__rpc__") and member.__module__ == module.__name__:
            yield from _declarations(member)


class _Names(Collection[str]):
    """Every name that a registry knows; to look for one loads no more than it takes to find it."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._registry.knows(name)

    def __iter__(self) -> Iterator[str]:
        return (name for spec in self._registry.specs for name in spec.names)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def is_enabled(spec: MethodSpec, context: Services, groups: Collection[str], transport: str) -> bool:
    """Whether a transport offers a method.

    `rpc_*` is there whenever any group is; `eth_subscribe` is there on WebSocket whichever groups are (json-rpc.md
    1.10).
    """
    return all(context.provides(service) for service in spec.needs) and is_offered(spec, groups, transport)


def is_offered(spec: MethodSpec, groups: Collection[str], transport: str) -> bool:
    """As `is_enabled`, whatever services there are."""
    if transport not in spec.transports:
        return False
    if spec.transports == {WEBSOCKET} and spec.group == "eth":
        return True
    return bool(groups) if spec.group == "rpc" else spec.group in groups


def _bound(spec: MethodSpec, context: Services) -> Bound:
    signature = spec.signature
    encode = signature.result.encode
    assert encode is not None, spec.name
    decode, call = _halves(spec, context)
    encoder = optional(encode) if signature.nullable else encode
    newest = None if spec.newest is None else context.at_newest(spec.newest)
    bring = context.bring if spec.brings else None
    return Bound(_compile(spec, context), encoder, signature.may_wait, spec.name, decode, call, newest, bring)


def _reworded(bound: Bound, words: Callable[[OphionError], OphionError]) -> Bound:
    """The same method with errors in other words."""

    async def awaited(result: Awaitable[Any]) -> Any:
        try:
            return await result
        except OphionError as error:
            raise words(error) from None

    def wrapped(function: Invoke) -> Invoke:
        def invoke(values: Sequence[Any], caller: Any) -> Any:
            try:
                result = function(values, caller)
            except OphionError as error:
                raise words(error) from None
            return awaited(result) if inspect.isawaitable(result) else result

        return invoke

    return bound._replace(invoke=wrapped(bound.invoke), call=wrapped(bound.call), bring=None)


def _refused(spec: MethodSpec, error: Callable[[], Exception]) -> Bound:
    def refuse(params: Sequence[Any], caller: Any) -> Any:
        raise error()

    return Bound(refuse, bytes, False, spec.name)


def _refuse(params: Sequence[Any], caller: Any) -> Any:
    raise METHOD_NOT_ENABLED()


_NOT_ENABLED: Final = Bound(_refuse, bytes, False, "")


# --- compiling a signature -----------------------------------------------------------------------


def _compile(spec: MethodSpec, context: Any) -> Invoke:
    """The fastest function that decodes the parameters of this signature and calls the handler.

    `null` for a parameter with a default means the default. The usual requests, with none, one or two parameters given,
    have a form of their own: a loop over decoders costs about a microsecond, which they do not have to spare.
    """
    function, parameters = spec.function, spec.signature.parameters
    if spec.signature.takes_caller or spec.exact_count:
        return _compile_checked(spec, context)
    if not parameters:
        return lambda params, caller: function(context)
    if parameters[0].is_repeated:
        decode = _decoder(parameters[0])
        return lambda params, caller: function(context, *(decode(value) for value in params))
    if len(parameters) == 1:
        return _compile_one(function, context, parameters[0])
    return _compile_more(function, context, parameters)


def _compile_one(function: Handler, context: Any, first: Parameter) -> Invoke:
    decode, default = _decoder(first), first.default

    def invoke(params: Sequence[Any], caller: Any) -> Any:
        value = params[0] if params else None
        if value is None:
            if default is REQUIRED:
                raise missing(first)
            return function(context, default)
        return function(context, decode(value))

    return invoke


def _compile_more(function: Handler, context: Any, parameters: tuple[Parameter, ...]) -> Invoke:
    decode_first, decode_second = _decoder(parameters[0]), _decoder(parameters[1])
    # with two given, the handler's own defaults stand for the rest
    needs_more = len(parameters) > 2 and parameters[2].default is REQUIRED
    most = 2 if len(parameters) > 2 else sys.maxsize

    def invoke(params: Sequence[Any], caller: Any) -> Any:
        if 2 <= len(params) <= most and not needs_more:
            first, second = params[0], params[1]
            if first is not None and second is not None:
                return function(context, decode_first(first), decode_second(second))
        return function(context, *_decoded(parameters, params))

    return invoke


def _compile_checked(spec: MethodSpec, context: Any) -> Invoke:
    decode, call = _halves(spec, context)
    return lambda params, caller: call(decode(params), caller)


def _halves(spec: MethodSpec, context: Any) -> tuple[Callable[[Sequence[Any]], Sequence[Any]], Invoke]:
    """Decoding, which touches nothing but the parameters, apart from the call, which belongs to the event loop."""
    function, parameters, takes_caller = spec.function, spec.signature.parameters, spec.signature.takes_caller
    most = len(parameters) if spec.exact_count else sys.maxsize

    def decode(params: Sequence[Any]) -> Sequence[Any]:
        if len(params) > most:
            raise invalid_params(f"{most} parameters are expected")
        if parameters and parameters[0].is_repeated:
            decoder = _decoder(parameters[0])
            return [decoder(value) for value in params]
        return _decoded(parameters, params)

    def call(values: Sequence[Any], caller: Any) -> Any:
        return function(context, caller, *values) if takes_caller else function(context, *values)

    return decode, call


def _decoded(parameters: Sequence[Parameter], params: Sequence[Any]) -> list[Any]:
    values = []
    for position, parameter in enumerate(parameters):
        value = params[position] if position < len(params) else None
        if value is not None:
            value = _decoder(parameter)(value)
        elif parameter.default is REQUIRED:
            raise missing(parameter)
        else:
            value = parameter.default
        values.append(value)
    return values


def missing(parameter: Parameter) -> Exception:
    """The error for a required parameter that is absent or null."""
    return invalid_params(f"{parameter.name}: missing")


def _decoder(parameter: Parameter) -> Callable[[Any], Any]:
    assert parameter.wire.decode is not None
    return parameter.wire.decode


# --- reading annotations -------------------------------------------------------------------------


def _parameters(name: str, function: Handler, hints: Mapping[str, Any]) -> tuple[tuple[Parameter, ...], bool]:
    names = list(inspect.signature(function).parameters.values())[1:]
    takes_caller = bool(names) and hints.get(names[0].name) is Caller
    parameters = []
    for parameter in names[1:] if takes_caller else names:
        wire = _wire(hints.get(parameter.name))
        if wire is None or wire.decode is None:
            raise TypeError(f"{name}: parameter {parameter.name} has no wire type that can be read")
        is_repeated = parameter.kind is inspect.Parameter.VAR_POSITIONAL
        default = () if is_repeated else parameter.default
        parameters.append(Parameter(_camel(parameter.name), wire, default, is_repeated))
    if len(parameters) > 1 and any(parameter.is_repeated for parameter in parameters):
        raise TypeError(f"{name}: a repeated parameter must be the only one")
    return tuple(parameters), takes_caller


def _result(name: str, hints: Mapping[str, Any]) -> tuple[Wire, bool]:
    alternatives = _alternatives(hints.get("return"))
    wires = {wire.name: wire for alternative in alternatives if (wire := _wire(alternative)) is not None}
    if len(wires) != 1 or next(iter(wires.values())).encode is None:
        raise TypeError(f"{name}: the result needs exactly one wire type that can be written")
    return next(iter(wires.values())), type(None) in alternatives


def _alternatives(hint: Any) -> list[Any]:
    """The members of a union, looking into awaitables: `X | None | Awaitable[X | None]` gives X and None."""
    if get_origin(hint) in (Union, UnionType):
        return [member for argument in get_args(hint) for member in _alternatives(argument)]
    if get_origin(hint) is Awaitable:
        return _alternatives(get_args(hint)[0])
    return [hint]


def _gives_awaitable(hint: Any) -> bool:
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return any(get_origin(member) is Awaitable for member in members)


def _wire(hint: Any) -> Wire | None:
    for member in _alternatives(hint):
        if get_origin(member) is Annotated:
            for extra in member.__metadata__:
                if isinstance(extra, Wire):
                    return extra
    return None


def _camel(name: str) -> str:
    head, *tail = name.split("_")
    return head + "".join(part.capitalize() for part in tail)


def group_names(specs: Iterable[MethodSpec]) -> Mapping[str, list[MethodSpec]]:
    """The specs of each group, in order of name."""
    groups: dict[str, list[MethodSpec]] = {}
    for spec in specs:
        groups.setdefault(spec.group, []).append(spec)
    return groups
