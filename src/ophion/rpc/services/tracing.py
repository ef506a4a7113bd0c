"""Streams the results of tracing methods.

Bodies and states are read in the trace lane, never on the event loop. The EVM runs in a thread of the Rust extension.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import orjson
from msgspec import Struct

from ophion.chain.traced_block import traced_block_of
from ophion.errors import InvalidBlock, MissingStateError, RpcError
from ophion.native.exceptions import InvalidBody, MissingState
from ophion.native.tracing import CallRefused, TimedOut, TracedBlock, TraceKind, TraceStream, trace_transaction
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Hash32
from ophion.rpc.errors import SERVER_ERROR_CODE, TIMEOUT_EXPIRED, invalid_params
from ophion.rpc.schema.wire_types import WireType, decode_boolean, spliced_result
from ophion.rpc.services.call_execution import refused
from ophion.rpc.services.context import RpcContext
from ophion.rpc.services.trace_cache import MAX_RECENT_BLOCKS, CachedSource, RecordedSource, TraceKey
from ophion.rpc.transport.streaming import Source, StreamedResult, opened, whole_of
from ophion.runtime.thread_pools import InlineLane

_CACHE_LANE: Final = InlineLane("trace cache")
TraceResult = Annotated[bytes | StreamedResult, spliced_result("trace", "trace in the requested format", {})]


class NotTraceable(Exception):  # this exception is not an error for the client: the method returns null
    """Raised when a block to trace is unknown or its state is pruned."""


async def streamed(
    ctx: RpcContext, start: Callable[[], TraceStream], key: TraceKey | None = None
) -> bytes | StreamedResult | None:
    """Return the result of a trace stream; None (null) if `start` raises `NotTraceable`.

    With a cache key, returns the cached result, or caches a new result under this key.
    """
    if key is None:
        return await _opened(ctx, start)
    pieces = ctx.traces.get(key)
    if pieces is None:
        return await _opened(ctx, lambda: RecordedSource(start(), ctx.traces, key))
    return await opened(_CACHE_LANE, ctx.streams, lambda: CachedSource(pieces))


async def _opened(ctx: RpcContext, start: Callable[[], Source]) -> bytes | StreamedResult | None:
    try:
        return await opened(ctx.lanes.trace, ctx.streams, start)
    except (NotTraceable, MissingState, MissingStateError):
        return None
    except TimedOut as error:
        raise TIMEOUT_EXPIRED() from error
    except CallRefused as error:
        raise refused(str(error)) from error
    except (InvalidBody, InvalidBlock) as error:
        raise RpcError(SERVER_ERROR_CODE, str(error)) from error


async def whole_trace(ctx: RpcContext, start: Callable[[], TraceStream]) -> bytes | None:
    """Return the whole result of a trace stream; None (null) if `start` raises `NotTraceable`."""
    found = await streamed(ctx, start)
    return found if found is None or isinstance(found, bytes) else await whole_of(found)


async def transaction_trace(ctx: RpcContext, hash: Hash32, kind: TraceKind) -> bytes | None:
    """Return the whole trace of a mined transaction; None if the transaction is not mined."""

    def start() -> TraceStream:
        block, index = transaction_at(ctx, hash)
        return trace_transaction(block, index, kind, ctx.limits.timeout_s)

    return await whole_trace(ctx, start)


def recent_key(ctx: RpcContext, header: HashedHeader | None, kind: bytes | None) -> TraceKey | None:
    """Return the cache key of a whole-block trace; None if the trace must not be stored."""
    if header is None or kind is None or header.number + MAX_RECENT_BLOCKS <= ctx.queries.head_number:
        return None
    return header.hash, kind


def recent_transaction_key(ctx: RpcContext, hash: Hash32, kind: bytes | None) -> TraceKey | None:
    """Return the cache key of the trace of a mined transaction; None if the trace must not be stored."""
    position = None if kind is None else ctx.queries.transaction_position(hash)
    if kind is None or position is None:
        return None
    return recent_key(ctx, ctx.queries.header(position[0]), b"%d:%b" % (position[2], kind))


async def traced(
    ctx: RpcContext,
    options: TraceOptions,
    start: Callable[[TraceKind], TraceStream],
    is_list: bool = False,
    key: TraceKey | None = None,
) -> bytes | StreamedResult | None:
    """Return the result of a tracer; None if there is nothing to trace. Several tracers run one after the other; the
    result has a key for each tracer.

    With `is_list`, the result has an entry `{txHash, result}` for each transaction. `key` is the cache key; see
    `streamed`.
    """
    if options.several is None:
        return await streamed(ctx, lambda: start(options.kind), key)
    parts: dict[str, bytes] = {}
    for name, kind in (options.several or {_NOOP: options.kind}).items():
        found = await whole_trace(ctx, lambda kind=kind: start(kind))  # type: ignore[misc]
        if found is None:
            return None
        parts[name] = found
    return orjson.dumps(_together(parts, options.several, is_list))


def _together(parts: Mapping[str, bytes], tracers: Mapping[str, TraceKind], is_list: bool) -> Any:
    if not is_list:
        # a call tree may be nested more deeply than `orjson` reads
        return {name: orjson.Fragment(parts[name]) for name in tracers}
    lists = {name: orjson.loads(part) for name, part in parts.items()}
    return [
        {**entry, "result": {name: lists[name][index]["result"] for name in tracers}}
        for index, entry in enumerate(next(iter(lists.values())))
    ]


def traced_block(ctx: RpcContext, header: HashedHeader | None, body: Body | None = None) -> TracedBlock:
    """Return a block with the state of its parent. Raises `NotTraceable` for an unknown block and for genesis."""
    found = None if header is None else traced_block_of(ctx.queries.chain, header, body)
    if found is None:
        raise NotTraceable
    return found


def transaction_at(ctx: RpcContext, hash: Hash32) -> tuple[TracedBlock, int]:
    """Return the block and index of a mined transaction. Raises `NotTraceable` if the transaction is not mined."""
    position = ctx.queries.transaction_position(hash)
    if position is None:
        raise NotTraceable
    return traced_block(ctx, ctx.queries.chain.header(position[0])), position[2]


# --- options of debug_trace* ---------------------------------------------------------------------


class TraceOptions(Struct, frozen=True):
    """Decoded options of a debug_trace* request. `is_named` is True if the request names a tracer."""

    kind: TraceKind
    """The tracer, or the first of several tracers. With `noopTracer` any tracer is set, because the result is
    discarded.
    """
    is_named: bool
    members: Mapping[str, Any]
    """The options object, from which methods read further keys."""
    several: Mapping[str, TraceKind] | None = None
    """The tracers of `muxTracer` by name; empty for `noopTracer`."""

    @property
    def cache_kind(self) -> bytes | None:
        """The keys of the options that determine the result, as bytes. None if these keys are too long or too deeply
        nested for a cache key.
        """
        members = {name: value for name in _RESULT_OPTIONS if (value := self.members.get(name)) is not None}
        try:
            text = orjson.dumps([self.is_named, members], option=orjson.OPT_SORT_KEYS)
        except orjson.JSONEncodeError:
            return None
        return text if len(text) <= _MAX_KIND_BYTES else None


def decode_trace_options(value: object) -> TraceOptions:
    """Decode the options object of debug_trace*; unknown keys are ignored."""
    if type(value) is not dict:
        raise invalid_params("options: an object is expected")
    name = value.get("tracer")
    if name is None or name == "":
        return TraceOptions(_struct_logs(value), name is not None, value)
    config = value.get("tracerConfig") or {}
    if type(config) is not dict:
        raise invalid_params("tracerConfig: an object is expected")
    _check_depth(config)
    if name == _MUX:
        return TraceOptions(_NOTHING, True, value, {one: _part(one, part or {}) for one, part in config.items()})
    if name == _NOOP:
        return TraceOptions(_NOTHING, True, value, {})
    return TraceOptions(_tracer(name, config), True, value)


def _check_depth(config: object) -> None:
    """Refuse a configuration that is nested more deeply than any tracer reads."""
    level = [config]
    for _ in range(_MAX_CONFIG_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if type(outer) is dict else outer if type(outer) is list else ())
        ]
        if not level:
            return
    raise invalid_params(f"tracerConfig: nested more than {_MAX_CONFIG_DEPTH} levels deep")


def _part(name: str, config: object) -> TraceKind:
    """Return one of the tracers of `muxTracer`."""
    if name in (_MUX, _NOOP):
        raise invalid_params(f"tracerConfig: {name} within {_MUX} is not supported. Tracers: {', '.join(_TRACERS)}")
    return _tracer(name, config)


def _tracer(name: object, config: object) -> TraceKind:
    make = _TRACERS.get(name) if type(name) is str else None
    if make is None and type(name) is str and "{" in name:
        raise invalid_params(f"tracer: JavaScript tracers are not supported. Tracers: {_names()}")
    if make is None:
        raise invalid_params(f"tracer: {name} is not known. Tracers: {_names()}")
    if type(config) is not dict:
        raise invalid_params("tracerConfig: an object is expected")
    return make(config)


def _names() -> str:
    return ", ".join((*_TRACERS, _MUX, _NOOP))


def _validation(config: Mapping[str, Any]) -> TraceKind:
    ignored = config.get("ignoredOpcodes")
    if ignored is None:
        return TraceKind.validation(with_log=_flag(config, "withLog"))
    try:
        opcodes = bytes(int(one, 16) for one in ignored)
    except (TypeError, ValueError):
        raise invalid_params("ignoredOpcodes: an array of opcodes in hexadecimal is expected") from None
    return TraceKind.validation(ignored_opcodes=opcodes, with_log=_flag(config, "withLog"))


def _flag(members: Mapping[str, Any], name: str) -> bool:
    value = members.get(name)
    return value is not None and decode_boolean(value)


def _struct_logs(members: Mapping[str, Any]) -> TraceKind:
    """Choose the struct log format: geth's if a geth option is given, else Pantheon 1.2's (json-rpc.md 9, line 20)."""
    storage, stack = not _flag(members, "disableStorage"), not _flag(members, "disableStack")
    if all(members.get(name) is None for name in _STANDARD_OPTIONS):
        return TraceKind.struct_logs(storage=storage, memory=not _flag(members, "disableMemory"), stack=stack)
    limit, opcodes = members.get("limit"), members.get("opcodes")
    if limit is not None and (type(limit) is not int or limit < 0):
        raise invalid_params("limit: a non-negative number is expected")
    if opcodes is not None and (type(opcodes) is not list or not all(type(name) is str for name in opcodes)):
        raise invalid_params("opcodes: an array of names is expected")
    is_memory_named = members.get("enableMemory") is not None or members.get("disableMemory") is None
    return TraceKind.standard_logs(
        storage=storage,
        memory=_flag(members, "enableMemory") if is_memory_named else not _flag(members, "disableMemory"),
        stack=stack,
        return_data=_flag(members, "enableReturnData"),
        limit=limit or None,
        opcodes=opcodes or None,
    )


_MAX_KIND_BYTES: Final = 512
_MAX_CONFIG_DEPTH: Final = 8
_RESULT_OPTIONS: Final = (
    "disableMemory",
    "disableStack",
    "disableStorage",
    "enableMemory",
    "enableReturnData",
    "limit",
    "opcodes",
    "tracer",
    "tracerConfig",
)
_STANDARD_OPTIONS: Final = ("tracer", "enableMemory", "enableReturnData", "limit", "opcodes")
_TRACERS: Final[Mapping[str, Callable[[Mapping[str, Any]], TraceKind]]] = {
    "callTracer": lambda config: TraceKind.calls(
        only_top_call=_flag(config, "onlyTopCall"), with_log=_flag(config, "withLog")
    ),
    "prestateTracer": lambda config: TraceKind.prestate(
        diff=_flag(config, "diffMode"),
        code=not _flag(config, "disableCode"),
        storage=not _flag(config, "disableStorage"),
        empty=_flag(config, "includeEmpty"),
    ),
    "flatCallTracer": lambda config: TraceKind.flat_calls(
        precompiles=_flag(config, "includePrecompiles"), trace_errors=_flag(config, "convertParityErrors")
    ),
    "4byteTracer": lambda config: TraceKind.selectors(),
    "erc7562Tracer": _validation,
}

_MUX, _NOOP = "muxTracer", "noopTracer"
_NOTHING: Final = TraceKind.selectors()
PLAIN: Final = decode_trace_options({})
TraceOptionsParam = Annotated[
    TraceOptions,
    WireType(
        "trace options",
        "what to leave out of struct logs, or the name of a tracer and its configuration",
        {
            "type": "object",
            "properties": {
                "disableStorage": {"type": "boolean"},
                "disableMemory": {"type": "boolean"},
                "disableStack": {"type": "boolean"},
                "enableMemory": {"type": "boolean"},
                "enableReturnData": {"type": "boolean"},
                "limit": {"type": "integer"},
                "opcodes": {"type": "array", "items": {"type": "string"}},
                "tracer": {"enum": ["", *_TRACERS, _MUX, _NOOP]},
                "tracerConfig": {"type": "object"},
            },
        },
        decode_trace_options,
    ),
]
