"""JSON-RPC 2.0 dispatcher: a message in, its answer out.

    body -> plain? read by the extension -> method table -> decode params -> handler -> encode -> envelope -> bytes
      |       \\-> read at the latest block, answered by Rust (fast_path.py) --------------------------------^
      \\-> parse -> envelope --------------^                     /
       \\-> outline (long messages) -------^                     /
        \\-> raw transaction, decoded to its bytes -------------^

If the handler does not wait, `Dispatcher.handle` returns `bytes` and creates no task. The dispatcher runs a coroutine
eagerly up to its first wait, and creates a task only if there is a wait. For an unfinished request the dispatcher
returns a `PendingReply`, which calls back once (transport/replies.py).

A long message is outlined before it is parsed (native/messages.py): the outline counts the values of the message and
finds id, method and parameters. Only the parameters are parsed, in a batch one request at a time. Very long messages
are parsed and decoded in a lane.

The dispatcher catches every exception of a handler and answers with an error, so that a handler cannot stop the node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial
from types import CoroutineType
from typing import Any, Final, TypeVar

import orjson

from ophion.native.messages import JsonOutline, json_outline
from ophion.rpc.dispatch.batches import Batch
from ophion.rpc.dispatch.deadlines import Deadlines
from ophion.rpc.dispatch.error_wording import ErrorWording
from ophion.rpc.dispatch.fast_path import PlainRequests, RawTransactionReply
from ophion.rpc.dispatch.geth_error_messages import worded
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.dispatch.request_ids import text_of_id, written_id
from ophion.rpc.dispatch.unsupported_methods import reason_declined
from ophion.rpc.errors import (
    BATCH_TOO_LARGE,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NULL,
    PARSE_ERROR,
    REQUEST_TOO_LARGE,
    RESPONSE_TOO_LARGE,
    STOPS,
    UNAUTHORIZED,
    as_rpc_error,
    clear_traceback,
    failure,
)
from ophion.rpc.schema.registry import BoundMethod, Caller
from ophion.rpc.transport.replies import (
    BAD_REQUEST,
    LARGE,
    OK,
    SUCCESS,
    UNAUTHORIZED_STATUS,
    Answer,
    Complete,
    PendingReply,
    Reply,
)
from ophion.rpc.transport.streaming import StreamedAnswer, StreamedResult
from ophion.runtime.eager_coroutine import driven
from ophion.runtime.thread_pools import LaneFull

logger = logging.getLogger(__name__)

_NO_PARAMS: Final[Sequence[Any]] = ()
_NOT_JSON: Final = Answer(BAD_REQUEST, (failure(NULL, PARSE_ERROR()),))
_INVALID: Final = Answer(BAD_REQUEST, (failure(NULL, INVALID_REQUEST()),))
_NO_REQUEST: Final = failure(NULL, INVALID_REQUEST())
_MAX_SHORT_BYTES: Final = 4 * 1024
"""A message of up to this size in bytes is parsed as a whole, which takes microseconds."""
_MAX_LOOP_BYTES: Final = 64 * 1024
"""Size in bytes above which a message is outlined in a worker thread instead of on the event loop."""
_MAX_LOOP_VALUES: Final = 2048
"""Maximum number of values in a message that is parsed on the event loop. Parsing 2,048 values takes about a
millisecond.
"""
_BYTES_OF_A_VALUE: Final = 72
"""Bytes of memory for a parsed empty object and its list entry."""
_BYTES_OF_A_MEMBER: Final = 128
_WEIGHT_OF_A_BYTE: Final = 8

T = TypeVar("T")


class Dispatcher:
    """Dispatches JSON-RPC messages to the methods of one method table."""

    def __init__(
        self, table: Mapping[str, BoundMethod], loop: asyncio.AbstractEventLoop, limits: DispatchLimits | None = None
    ) -> None:
        self._table = table
        self._loop = loop
        self._limits = limits or DispatchLimits()
        self._error_status = self._limits.error_status
        self._deadlines = Deadlines(loop, self._limits.timeout_s)
        self._plain = PlainRequests()
        self._read = self._plain.read

    def handle(self, body: bytes, caller: Caller | None = None) -> Reply:
        """Answer one message: a request, a notification (an empty answer) or a batch."""
        if len(body) > _MAX_SHORT_BYTES:
            return self._long(body, caller)
        plain = self._read(body)
        if isinstance(plain, bytes):
            return plain
        if plain is None:
            reply = self._parsed(body, caller)
        else:
            id_text, name, params = plain
            try:
                bound = self._table[name]
            except KeyError:
                return self._failed(METHOD_NOT_FOUND(reason_declined(name)), name, id_text)
            if type(params) is bytes:
                reply = self._send(bound, params, caller, id_text)
            else:
                if bound.latest_read is not None:
                    self._plain.learn(name, bound)
                reply = self._call(bound, params, caller, id_text)
        if isinstance(reply, PendingReply):
            self._deadlines.watch(reply)
        return reply

    def _send(self, bound: BoundMethod, raw: bytes, caller: Caller | None, id_text: bytes) -> Reply:
        """Submit a raw transaction that the Rust extension has decoded from the message."""
        if bound.submit is None:
            return self._call(
                bound if bound.decode is None else bound._replace(invoke=bound.call), (raw,), caller, id_text
            )
        sent = RawTransactionReply(raws=(raw,), name=bound.name, id_text=id_text, failed=self._failed)
        try:
            bound.submit(sent)
        except Exception as error:  # noqa: BLE001  # the client gets the error
            return self._failed(error, bound.name, id_text)
        return sent

    def close(self) -> None:
        """Cancel every request that waits for its result."""
        self._deadlines.close()

    # --- single requests -------------------------------------------------------------------------

    def _call(self, bound: BoundMethod, params: Sequence[Any], caller: Caller | None, id_text: bytes) -> Reply:
        try:
            invoke, encode = bound.invoke, bound.encode
            value = invoke(params, caller)
            if bound.may_wait:
                if type(value) is CoroutineType:
                    value = driven(value, self._loop)
                if isinstance(value, asyncio.Future):
                    return self._await(value, bound, id_text)
            result = encode(value)
        except STOPS:
            raise
        except BaseException as error:  # noqa: BLE001  # the client gets the error
            return self._failed(error, bound.name, id_text)
        if len(result) < LARGE:
            return SUCCESS % (id_text, result)
        return self._large(id_text, result)

    def _large(self, id_text: bytes, result: bytes | StreamedResult) -> Complete:
        """Wrap a large or streamed result in an answer, without copying the result into one byte string. A result above
        the size limit becomes an error.
        """
        if isinstance(result, StreamedResult):
            return StreamedAnswer(id_text, b'{"jsonrpc":"2.0","id":%b,"result":' % id_text, result, b"}")
        if len(result) > self._limits.max_response_bytes:
            return failure(id_text, RESPONSE_TOO_LARGE())
        return Answer(OK, (b'{"jsonrpc":"2.0","id":%b,"result":' % id_text, result, b"}"))

    def _parsed(self, body: bytes, caller: Caller | None) -> Reply:
        """Handle a message that is not a plain request."""
        try:
            message = orjson.loads(body)
        except orjson.JSONDecodeError:
            # take the slow path, because orjson rejects integers beyond 64 bits, and a request id may be such an
            # integer
            return self._outlined(body, json_outline(body, self._limits.max_batch), caller)
        if type(message) is dict:
            return self._request(message, caller, body)
        return self._batch(message, body, caller) if type(message) is list else _NOT_JSON

    def _request(self, message: dict[str, Any], caller: Caller | None, text: bytes) -> Reply:
        """Handle one parsed message; `text` is the JSON text of the message."""
        written = text_of_id(message, text)
        if written is None:
            return _INVALID
        name, params = message.get("method"), message.get("params")
        if type(name) is not str or (type(params) is not list and params is not None):
            return Answer(BAD_REQUEST, (failure(written or NULL, INVALID_REQUEST()),))
        if not written:
            return b""
        bound = self._table.get(name)
        if bound is None:
            return self._failed(METHOD_NOT_FOUND(reason_declined(name)), name, written)
        return self._call(bound, params or _NO_PARAMS, caller, written)

    # --- long messages ---------------------------------------------------------------------------

    def _long(self, body: bytes, caller: Caller | None) -> Reply:
        if len(body) <= _MAX_LOOP_BYTES:
            reply = self._outlined(body, json_outline(body, self._limits.max_batch), caller)
        else:
            reply = self._in_lane(
                lambda: json_outline(body, self._limits.max_batch),
                lambda outline: self._outlined(body, outline, caller),
                NULL,
                len(body),
            )
        if isinstance(reply, PendingReply):
            self._deadlines.watch(reply)
        return reply

    def _outlined(self, text: bytes, outline: JsonOutline | None, caller: Caller | None) -> Reply:
        """Handle a long message by its outline: the positions of id, method and parameters of each request."""
        if outline is None or not (outline.is_request or outline.is_batch):
            return _NOT_JSON
        if outline.is_batch:
            return self._long_batch(text, outline, caller)
        written = written_id(text, outline.id)
        if written is None:
            return _INVALID
        name, params = _part(text, outline.method), _part(text, outline.params) or NULL
        if name[:1] != b'"' or (params[:1] != b"[" and params != NULL):
            return Answer(BAD_REQUEST, (failure(written or NULL, INVALID_REQUEST()),))
        if not written:
            return b""
        if outline.values > self._limits.max_values:
            return self._failed(REQUEST_TOO_LARGE(), "", written)
        try:
            method = orjson.loads(name)
        except orjson.JSONDecodeError:
            return _NOT_JSON  # the method name contains a lone surrogate, which `json_outline` does not detect
        bound = self._table.get(method)
        if bound is None:
            return self._failed(METHOD_NOT_FOUND(reason_declined(method)), method, written)
        if bound.decode is None:
            return self._call(bound, _NO_PARAMS, caller, written)
        if outline.values <= _MAX_LOOP_VALUES and len(text) <= _MAX_LOOP_BYTES:
            values = _loaded(params)
            return _NOT_JSON if values is None else self._call(bound, values, caller, written)
        decode, prepared = bound.decode, bound._replace(invoke=bound.call)
        weight = len(text) + _BYTES_OF_A_VALUE * outline.values

        def decoded() -> Sequence[Any] | None:
            values = _loaded(params)
            return None if values is None else decode(values)

        def then(values: Sequence[Any] | None) -> Reply:
            return _NOT_JSON if values is None else self._call(prepared, values, caller, written)

        return self._when_admitted(lambda: self._in_lane(decoded, then, written, weight), len(text))

    def _when_admitted(self, start: Callable[[], Reply], weight: int) -> PendingReply[Complete]:
        """Start a large request as soon as `LargeRequests` admits it."""
        heavy = self._limits.heavy
        pending: PendingReply[Complete] = PendingReply(lambda: heavy.give_up(begin_later))
        pending.weight = weight

        def begin() -> None:
            reply = start()
            if isinstance(reply, PendingReply):
                pending.follow(reply, heavy.leave)
            else:
                # deliver the reply in the next loop iteration, because the caller has not set `deliver` yet
                self._loop.call_soon(heavy.leave)
                self._loop.call_soon(pending.resolve, reply)

        # a request that starts later runs as the same principal (runtime/principal.py)
        begin_later = partial(copy_context().run, begin)
        heavy.enter(begin_later)
        return pending

    def _in_lane(self, job: Callable[[], T], then: Callable[[T], Reply], id_text: bytes, weight: int) -> Reply:
        """Run a job in a worker thread. Afterwards call `then` with the result on the event loop."""
        try:
            future = self._limits.lane.submit(job)
        except LaneFull as error:
            return self._failed(error, "", id_text)
        pending: PendingReply[Complete] = PendingReply(future.cancel)
        pending.weight = weight

        def finish(done: asyncio.Future[T]) -> None:
            if pending.is_done or done.cancelled():
                return
            error = done.exception()
            reply = then(done.result()) if error is None else self._failed(error, "", id_text)
            if isinstance(reply, PendingReply):
                pending.follow(reply)
            else:
                pending.resolve(reply)

        future.add_done_callback(finish)
        return pending

    def _await(self, future: asyncio.Future[Any], bound: BoundMethod, id_text: bytes) -> PendingReply[Complete]:
        pending: PendingReply[Complete] = PendingReply(future.cancel)
        pending.has_timeout = bound.has_timeout
        future.add_done_callback(partial(self._finish, pending, bound, id_text))
        return pending

    def _finish(
        self, pending: PendingReply[Complete], bound: BoundMethod, id_text: bytes, done: asyncio.Future[Any]
    ) -> None:
        if pending.is_done or done.cancelled():
            return
        try:
            result = bound.encode(done.result())
        except STOPS:
            raise
        except BaseException as error:  # noqa: BLE001  # the client gets the error
            pending.resolve(self._failed(error, bound.name, id_text))
        else:
            pending.resolve(SUCCESS % (id_text, result) if len(result) < LARGE else self._large(id_text, result))

    def _failed(self, error: BaseException, name: str, id_text: bytes) -> Complete:
        known = as_rpc_error(error)
        if known is None:
            logger.error("rpc handler failed method=%s", name, exc_info=error)
            known = INTERNAL_ERROR()
        clear_traceback(error)
        if self._limits.wording is not ErrorWording.ORIGINAL:
            known = worded(error, known, name, self._limits.wording)
        text = failure(id_text, known)
        if known.code == UNAUTHORIZED.code:
            return Answer(UNAUTHORIZED_STATUS, (text,))
        return text if self._error_status == OK else Answer(self._error_status, (text,))

    # --- batches ---------------------------------------------------------------------------------

    def _batch(self, messages: list[Any], body: bytes, caller: Caller | None) -> Reply:
        if any(type(message) is dict and type(message.get("id")) is float for message in messages):
            outline = json_outline(body, self._limits.max_batch)
            return _NOT_JSON if outline is None else self._long_batch(body, outline, caller)

        def request(position: int) -> Reply:
            message = messages[position]
            return self._request(message, caller, b"") if type(message) is dict else _NO_REQUEST

        def id_text(position: int) -> bytes:
            message = messages[position]
            written = text_of_id(message, b"") if type(message) is dict else None
            return NULL if written is None else written

        return self._started(len(messages), request, id_text, len(body) * _WEIGHT_OF_A_BYTE)

    def _long_batch(self, text: bytes, outline: JsonOutline, caller: Caller | None) -> Reply:
        """Handle a JSON-RPC batch whose requests are parsed one by one."""

        def request(position: int) -> Reply:
            start, end, values = outline.member(position)
            member = text[start:end]
            if member[:1] != b"{":
                return _NO_REQUEST
            if values > _MAX_LOOP_VALUES or len(member) > _MAX_LOOP_BYTES:
                return self._outlined(member, json_outline(member, 0), caller)
            try:
                return self._request(orjson.loads(member), caller, member)
            except orjson.JSONDecodeError:
                return self._outlined(member, json_outline(member, 0), caller)

        def id_text(position: int) -> bytes:
            start, end, _ = outline.member(position)
            inner = json_outline(text[start:end], 0)
            written = None if inner is None else written_id(text[start:end], inner.id)
            return NULL if written is None else written

        return self._started(outline.count, request, id_text, len(text) + _BYTES_OF_A_MEMBER * outline.count)

    def _started(
        self, members: int, request: Callable[[int], Reply], id_text: Callable[[int], bytes], weight: int
    ) -> Reply:
        limits = self._limits
        if not members:
            return _INVALID
        if members > limits.max_batch:
            return failure(NULL, BATCH_TOO_LARGE())
        return Batch(request, id_text, members, limits.scheduler, limits.max_response_bytes, weight).start()


def _part(text: bytes, span: tuple[int, int] | None) -> bytes:
    return b"" if span is None else text[span[0] : span[1]]


def _loaded(params: bytes) -> Sequence[Any] | None:
    """Parse the parameters of an outlined request.

    Returns None for errors that the outline does not detect: numbers out of range, lone surrogates.
    """
    try:
        return orjson.loads(params) or _NO_PARAMS
    except orjson.JSONDecodeError:
        return None
