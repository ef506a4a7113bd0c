"""Bytes in, bytes out: JSON-RPC 2.0 without any knowledge of HTTP or WebSocket.

    body -> usual? read by the extension -> method table -> decode params -> handler -> encode -> envelope -> bytes
      |       \\-> plain question about the newest block, answered there --------------------------------------^
      \\-> parse -> envelope --------------^                     /
       \\-> outline (long ones) ----------^                     /
        \\-> a transaction that is sent, read to its bytes ----^

`Dispatcher.handle` answers a request in the turn of the loop in which it arrived whenever the handler does not wait:
no task is made, nothing is scheduled, and the reply comes back as plain `bytes`. A coroutine is driven to its first
wait by hand and becomes a task only there. What could not be finished is returned as a `Pending`, which calls back
once (transport/replies.py).

A long message is not parsed before it is known what it is (native/messages.py): how many values it holds, where its id
and its parameters stand. Only the parameters are parsed, of a batch one member at a time; those of a very long one in a
lane, and so are they decoded there.

This is one of the five places of the node that catch everything: a handler's failure is an answer, never the end of the
node.
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
from ophion.rpc.dispatch.geth_error_messages import modern
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.dispatch.request_ids import text_of_id, written_id
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
    failure,
    let_go,
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
    Pending,
    Reply,
)
from ophion.rpc.transport.streaming import Streamed, StreamedAnswer
from ophion.runtime.eager_coroutine import driven
from ophion.runtime.lanes import LaneFull

logger = logging.getLogger(__name__)

_NO_PARAMS: Final[Sequence[Any]] = ()
_NOT_JSON: Final = Answer(BAD_REQUEST, (failure(NULL, PARSE_ERROR()),))
_INVALID: Final = Answer(BAD_REQUEST, (failure(NULL, INVALID_REQUEST()),))
_NO_REQUEST: Final = failure(NULL, INVALID_REQUEST())
_SHORT: Final = 4 * 1024
"""Up to here a message is parsed as a whole, in microseconds."""
_LONG: Final = 64 * 1024
"""From here on looking at a message takes so long that the loop does not wait for it."""
_MANY: Final = 2048
"""So many values take about a millisecond to parse and to decode."""
_BYTES_OF_A_VALUE: Final = 72
"""What the parser makes of the shortest values: an empty object, and its place in a list."""
_BYTES_OF_A_MEMBER: Final = 128
_WEIGHT_OF_A_BYTE: Final = 8

T = TypeVar("T")


class Dispatcher:
    """One method table at work."""

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
        if len(body) > _SHORT:
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
                return self._failed(METHOD_NOT_FOUND(), name, id_text)
            if type(params) is bytes:
                reply = self._send(bound, params, caller, id_text)
            else:
                if bound.latest_read is not None:
                    self._plain.learn(name, bound)
                reply = self._call(bound, params, caller, id_text)
        if isinstance(reply, Pending):
            self._deadlines.watch(reply)
        return reply

    def _send(self, bound: BoundMethod, raw: bytes, caller: Caller | None, id_text: bytes) -> Reply:
        """Send a transaction whose bytes the extension has found in the message already."""
        if bound.submit is None:
            return self._call(
                bound if bound.decode is None else bound._replace(invoke=bound.call), (raw,), caller, id_text
            )
        sent = RawTransactionReply(raws=(raw,), name=bound.name, id_text=id_text, failed=self._failed)
        try:
            bound.submit(sent)
        except Exception as error:  # noqa: BLE001  # as below
            return self._failed(error, bound.name, id_text)
        return sent

    def close(self) -> None:
        """Give up everything that is still waiting."""
        self._deadlines.close()

    # --- one request -----------------------------------------------------------------------------

    def _call(self, bound: BoundMethod, params: Sequence[Any], caller: Caller | None, id_text: bytes) -> Reply:
        try:
            invoke, encode = bound.invoke, bound.encode
            value = invoke(params, caller)
            if bound.may_wait:
                if type(value) is CoroutineType:
                    value = driven(value, self._loop)
                if isinstance(value, asyncio.Future):
                    return self._later(value, bound, id_text)
            result = encode(value)
        except STOPS:
            raise
        except BaseException as error:  # noqa: BLE001  # a failure is an answer, see above
            return self._failed(error, bound.name, id_text)
        if len(result) < LARGE:
            return SUCCESS % (id_text, result)
        return self._large(id_text, result)

    def _large(self, id_text: bytes, result: bytes | Streamed) -> Complete:
        """A result so large that copying it into its envelope would cost more than writing three parts."""
        if isinstance(result, Streamed):
            return StreamedAnswer(id_text, b'{"jsonrpc":"2.0","id":%b,"result":' % id_text, result, b"}")
        if len(result) > self._limits.max_response_bytes:
            return failure(id_text, RESPONSE_TOO_LARGE())
        return Answer(OK, (b'{"jsonrpc":"2.0","id":%b,"result":' % id_text, result, b"}"))

    def _parsed(self, body: bytes, caller: Caller | None) -> Reply:
        """Handle a message that is not a plain request."""
        try:
            message = orjson.loads(body)
        except orjson.JSONDecodeError:
            # numbers without a size are JSON: as an id they go back as they came
            return self._outlined(body, json_outline(body, self._limits.max_batch), caller)
        if type(message) is dict:
            return self._request(message, caller, body)
        return self._batch(message, body, caller) if type(message) is list else _NOT_JSON

    def _request(self, message: dict[str, Any], caller: Caller | None, text: bytes) -> Reply:
        """One message of any form, and its text."""
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
            return self._failed(METHOD_NOT_FOUND(), name, written)
        return self._call(bound, params or _NO_PARAMS, caller, written)

    # --- long messages ---------------------------------------------------------------------------

    def _long(self, body: bytes, caller: Caller | None) -> Reply:
        if len(body) <= _LONG:
            reply = self._outlined(body, json_outline(body, self._limits.max_batch), caller)
        else:
            reply = self._in_lane(
                lambda: json_outline(body, self._limits.max_batch),
                lambda outline: self._outlined(body, outline, caller),
                NULL,
                len(body),
            )
        if isinstance(reply, Pending):
            self._deadlines.watch(reply)
        return reply

    def _outlined(self, text: bytes, outline: JsonOutline | None, caller: Caller | None) -> Reply:
        """A message of which is known what stands where."""
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
            return _NOT_JSON  # half a character, which an outline does not look for
        bound = self._table.get(method)
        if bound is None:
            return self._failed(METHOD_NOT_FOUND(), method, written)
        if bound.decode is None:
            return self._call(bound, _NO_PARAMS, caller, written)
        if outline.values <= _MANY and len(text) <= _LONG:
            values = _loaded(params)
            return _NOT_JSON if values is None else self._call(bound, values, caller, written)
        decode, prepared = bound.decode, bound._replace(invoke=bound.call)
        weight = len(text) + _BYTES_OF_A_VALUE * outline.values

        def decoded() -> Sequence[Any] | None:
            values = _loaded(params)
            return None if values is None else decode(values)

        def decided(values: Sequence[Any] | None) -> Reply:
            return _NOT_JSON if values is None else self._call(prepared, values, caller, written)

        return self._one_of_few(lambda: self._in_lane(decoded, decided, written, weight), len(text))

    def _one_of_few(self, start: Callable[[], Reply], weight: int) -> Pending[Complete]:
        """A request that takes much to work with: begun when it is among the few (`LargeRequests`)."""
        heavy = self._limits.heavy
        pending: Pending[Complete] = Pending(lambda: heavy.give_up(begin_later))
        pending.weight = weight

        def begin() -> None:
            reply = start()
            if isinstance(reply, Pending):
                pending.follow(reply, heavy.leave)
            else:
                # not at once: whoever gets this reply does not know yet that it waits for one
                self._loop.call_soon(heavy.leave)
                self._loop.call_soon(pending.resolve, reply)

        # whoever asks, still asks when it begins (runtime/principal.py)
        begin_later = partial(copy_context().run, begin)
        heavy.enter(begin_later)
        return pending

    def _in_lane(self, job: Callable[[], T], then: Callable[[T], Reply], id_text: bytes, weight: int) -> Reply:
        """Something that would hold the loop for too long, and what is to be done with its result."""
        try:
            future = self._limits.lane.submit(job)
        except LaneFull as error:
            return self._failed(error, "", id_text)
        pending: Pending[Complete] = Pending(future.cancel)
        pending.weight = weight

        def finish(done: asyncio.Future[T]) -> None:
            if pending.is_done or done.cancelled():
                return
            error = done.exception()
            reply = then(done.result()) if error is None else self._failed(error, "", id_text)
            if isinstance(reply, Pending):
                pending.follow(reply)
            else:
                pending.resolve(reply)

        future.add_done_callback(finish)
        return pending

    def _later(self, future: asyncio.Future[Any], bound: BoundMethod, id_text: bytes) -> Pending[Complete]:
        pending: Pending[Complete] = Pending(future.cancel)
        future.add_done_callback(partial(self._finish, pending, bound, id_text))
        return pending

    def _finish(
        self, pending: Pending[Complete], bound: BoundMethod, id_text: bytes, done: asyncio.Future[Any]
    ) -> None:
        if pending.is_done or done.cancelled():
            return
        try:
            result = bound.encode(done.result())
        except STOPS:
            raise
        except BaseException as error:  # noqa: BLE001  # as above
            pending.resolve(self._failed(error, bound.name, id_text))
        else:
            pending.resolve(SUCCESS % (id_text, result) if len(result) < LARGE else self._large(id_text, result))

    def _failed(self, error: BaseException, name: str, id_text: bytes) -> Complete:
        known = as_rpc_error(error)
        if known is None:
            logger.error("rpc handler failed method=%s", name, exc_info=error)
            known = INTERNAL_ERROR()
        let_go(error)
        if self._limits.wording is ErrorWording.MODERN:
            known = modern(error, known, name)
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
        """A batch of which each member is parsed when its turn has come."""

        def request(position: int) -> Reply:
            start, end, values = outline.member(position)
            member = text[start:end]
            if member[:1] != b"{":
                return _NO_REQUEST
            if values > _MANY or len(member) > _LONG:
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
        return Batch(request, id_text, members, limits.turns, limits.max_response_bytes, weight).start()


def _part(text: bytes, place: tuple[int, int] | None) -> bytes:
    return b"" if place is None else text[place[0] : place[1]]


def _loaded(params: bytes) -> Sequence[Any] | None:
    """The parameters of a request that was outlined; None for what an outline does not look for: numbers without a
    size, halves of characters."""
    try:
        return orjson.loads(params) or _NO_PARAMS
    except orjson.JSONDecodeError:
        return None
