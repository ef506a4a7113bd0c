"""Bytes in, bytes out: JSON-RPC 2.0 without any knowledge of HTTP or WebSocket.

    body -> parse -> envelope -> method table -> decode params -> handler -> encode -> envelope -> bytes

`Dispatcher.handle` answers a request in the turn of the loop in which it arrived whenever the handler does not wait:
no task is made, nothing is scheduled, and the reply comes back as plain `bytes`. A coroutine is driven to its first
wait by hand and becomes a task only there. What could not be finished is returned as a `Pending`, which calls back
once.

Four kinds of reply, so that the usual one costs nothing: `bytes` is a complete answer with status 200; an `Answer` has
another status or several parts (a large rendered result is not copied into an envelope); a `StreamedAnswer` is still
being made while it is sent (streaming.py); a `Pending` comes later.
Statuses mean something to HTTP only and are ignored elsewhere (json-rpc.md 1.4). This is one of the five places of the
node that catch everything: a handler's failure is an answer, never the end of the node.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import CoroutineType, coroutine
from typing import Any, Final, Generic, TypeAlias, TypeVar

import orjson

from ophion.errors import RpcError
from ophion.rpc.errors import (
    BATCH_TOO_LARGE,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RESPONSE_TOO_LARGE,
    TIMEOUT_EXPIRED,
    UNAUTHORIZED,
    as_rpc_error,
)
from ophion.rpc.registry import Bound, Caller
from ophion.rpc.streaming import Streamed, StreamedAnswer, collected

logger = logging.getLogger(__name__)

OK: Final = 200
BAD_REQUEST: Final = 400
UNAUTHORIZED_STATUS: Final = 401
REQUEST_TIMEOUT: Final = 408

T = TypeVar("T")

_ABSENT: Final = object()
_NULL: Final = b"null"
_LARGE: Final = 64 * 1024
_NO_PARAMS: Final[Sequence[Any]] = ()
_BATCH_TASKS: Final = 16
"""Members of one batch that may wait in lanes at the same time; the lanes serve other clients too."""
_SMALL_BATCH: Final = 16
"""A batch of so few members begins at once; a larger one waits for its turn when others are at work."""
_BATCH_SLICE_S: Final = 0.005
"""How long a batch may hold the loop before others get their turn."""
_STOPS: Final = (KeyboardInterrupt, SystemExit)
"""What ends the process. Everything else ends a request, also a panic of the extension, which is no `Exception`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply that is not simply `bytes`: another status, or parts that are written one after another."""

    status: int
    parts: tuple[bytes, ...]

    def join(self) -> bytes:
        """The whole body."""
        return b"".join(self.parts)


class Pending(Generic[T]):
    """Something that comes later; `deliver` is set by whoever received this and is called exactly once."""

    __slots__ = ("_abandon", "deliver", "forget", "is_done")

    def __init__(self, abandon: Callable[[], object]) -> None:
        self.deliver: Callable[[T], None] = _nobody
        self.forget: Callable[[Pending[T]], object] = _nobody
        """Called when the wait is over, however it ended."""
        self.is_done = False
        self._abandon = abandon

    def resolve(self, reply: T) -> None:
        """Hand over the reply, unless the wait has been given up."""
        if not self.is_done:
            self.is_done = True
            self.forget(self)
            self.deliver(reply)

    def abandon(self) -> None:
        """Stop the work behind this reply: its client is gone or its time is up."""
        self.is_done = True
        self.forget(self)
        self._abandon()


Complete: TypeAlias = bytes | Answer | StreamedAnswer
Reply: TypeAlias = bytes | Answer | StreamedAnswer | Pending[Complete]


@dataclass(frozen=True, slots=True)
class DispatchLimits:
    """What one dispatcher allows."""

    max_batch: int = 1024
    timeout_s: float = 30.0
    error_status: int = OK
    """Status of a method error: 200, or 400 as the original client answered (json-rpc.md 9, line 1)."""
    max_response_bytes: int = 256 * 1024 * 1024
    """Most of an answer that is put together before it is sent: of a batch, or of a result that is not streamed."""


class Dispatcher:
    """One method table at work."""

    def __init__(
        self, table: Mapping[str, Bound], loop: asyncio.AbstractEventLoop, limits: DispatchLimits | None = None
    ) -> None:
        self._table = table
        self._loop = loop
        self._limits = limits or DispatchLimits()
        self._error_status = self._limits.error_status
        self._turns = _Turns(loop)
        self._waiting: dict[Pending[Complete], float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def handle(self, body: bytes, caller: Caller | None = None) -> Reply:
        """Answer one message: a request, a notification (an empty answer) or a batch."""
        try:
            message = orjson.loads(body)
        except orjson.JSONDecodeError:
            return _PARSE_ANSWER
        try:
            request_id = message["id"]
            bound = self._table[message["method"]]
            params = message["params"]
        except (KeyError, TypeError):
            return self._unusual(message, body, caller)
        if type(request_id) is not int or type(params) is not list:
            return self._unusual(message, body, caller)
        reply = self._call(bound, params, caller, b"%d" % request_id)
        if type(reply) is Pending:
            self._watch(reply)
        return reply

    def close(self) -> None:
        """Give up everything that is still waiting."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for pending in tuple(self._waiting):
            pending.abandon()
        self._waiting.clear()

    # --- one request -----------------------------------------------------------------------------

    def _call(self, bound: Bound, params: Sequence[Any], caller: Caller | None, id_text: bytes) -> Reply:
        try:
            invoke, encode, may_wait, _ = bound
            value = invoke(params, caller)
            if may_wait:
                if type(value) is CoroutineType:
                    value = self._drive(value)
                if isinstance(value, asyncio.Future):
                    return self._later(value, bound, id_text)
            result = encode(value)
        except _STOPS:
            raise
        except BaseException as error:  # noqa: BLE001  # a failure is an answer, see above
            return self._failed(error, bound.name, id_text)
        if len(result) < _LARGE:
            return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id_text, result)
        return self._large(id_text, result)

    def _large(self, id_text: bytes, result: bytes | Streamed) -> Complete:
        """A result so large that copying it into its envelope would cost more than writing three parts."""
        if isinstance(result, Streamed):
            return StreamedAnswer(id_text, b'{"jsonrpc":"2.0","id":%b,"result":' % id_text, result, b"}")
        if len(result) > self._limits.max_response_bytes:
            return failure(id_text, RESPONSE_TOO_LARGE())
        return Answer(OK, (b'{"jsonrpc":"2.0","id":%b,"result":' % id_text, result, b"}"))

    def _unusual(self, message: Any, body: bytes, caller: Caller | None) -> Reply:
        """Everything but a request with all its members and an integer id."""
        if type(message) is list:
            reply = self._batch(message, body, caller)
        elif type(message) is dict:
            reply = self._request(message, caller, body)
        else:
            return _PARSE_ANSWER
        if type(reply) is Pending:
            self._watch(reply)
        return reply

    def _request(self, message: dict[str, Any], caller: Caller | None, body: bytes = b"") -> Reply:
        """One message of any form; `body` is its text, which an id that is no integer may need."""
        id_text = _id_text(message, body)
        if id_text is None:
            return _INVALID_ANSWER
        name, params = message.get("method"), message.get("params")
        if type(name) is not str or (type(params) is not list and params is not None):
            return Answer(BAD_REQUEST, (failure(id_text or _NULL, INVALID_REQUEST()),))
        if not id_text:
            return b""
        bound = self._table.get(name)
        if bound is None:
            return self._failed(METHOD_NOT_FOUND(), name, id_text)
        return self._call(bound, params or _NO_PARAMS, caller, id_text)

    def _drive(self, started: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine up to its first wait: its result when it does not wait, otherwise a task for the rest."""
        try:
            awaited = started.send(None)
        except StopIteration as stop:
            return stop.value
        return self._loop.create_task(_resume(started, awaited))

    def _later(self, future: asyncio.Future[Any], bound: Bound, id_text: bytes) -> Pending[Complete]:
        pending: Pending[Complete] = Pending(future.cancel)

        def finish(done: asyncio.Future[Any]) -> None:
            if pending.is_done or done.cancelled():
                return
            try:
                result = bound.encode(done.result())
            except _STOPS:
                raise
            except BaseException as error:  # noqa: BLE001  # as above
                pending.resolve(self._failed(error, bound.name, id_text))
            else:
                pending.resolve(
                    b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id_text, result)
                    if len(result) < _LARGE
                    else self._large(id_text, result)
                )

        future.add_done_callback(finish)
        return pending

    def _failed(self, error: BaseException, name: str, id_text: bytes) -> Complete:
        known = as_rpc_error(error)
        if known is None:
            logger.error("rpc handler failed method=%s", name, exc_info=error)
            known = INTERNAL_ERROR()
        text = failure(id_text, known)
        if known.code == UNAUTHORIZED.code:
            return Answer(UNAUTHORIZED_STATUS, (text,))
        return text if self._error_status == OK else Answer(self._error_status, (text,))

    # --- batches and deadlines -------------------------------------------------------------------

    def _batch(self, messages: list[Any], body: bytes, caller: Caller | None) -> Reply:
        if not messages:
            return _INVALID_ANSWER
        if len(messages) > self._limits.max_batch:
            return failure(_NULL, BATCH_TOO_LARGE())
        if any(type(message) is dict and type(message.get("id")) is float for message in messages):
            _keep_ids(messages, body)
        return _Batch(self._request, self._turns, messages, caller, self._limits.max_response_bytes).start()

    def _watch(self, pending: Pending[Complete]) -> None:
        """Note when a wait began; one timer serves all waits of the dispatcher, which all last equally long."""
        now = self._loop.time()
        self._waiting[pending] = now + self._limits.timeout_s
        pending.forget = self._forget
        if self._timer is None:
            self._timer = self._loop.call_later(self._limits.timeout_s, self._expire)

    def _forget(self, pending: Pending[Complete]) -> None:
        self._waiting.pop(pending, None)

    def _expire(self) -> None:
        now = self._loop.time()
        self._timer = None
        for pending, deadline in tuple(self._waiting.items()):
            if deadline > now:
                self._timer = self._loop.call_later(deadline - now, self._expire)
                return
            pending.resolve(_TIMEOUT_ANSWER)
            pending.abandon()


class _Turns:
    """Which batch may hold the loop: one slice of one batch at a time, so that others are served in between.

    It also knows what the answers of all batches in progress hold together.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.held_bytes = 0
        self._queue: deque[_Batch] = deque()

    @property
    def is_busy(self) -> bool:
        return bool(self._queue)

    def wait(self, batch: _Batch) -> None:
        """Give a batch its turn when the others have had theirs."""
        self._queue.append(batch)
        if len(self._queue) == 1:
            self.loop.call_soon(self._next)

    def _next(self) -> None:
        batch = self._queue[0]
        batch.resume()
        self._queue.popleft()
        if self._queue:
            # not at once: requests that have arrived meanwhile come first
            self.loop.call_soon(self._next)


class _Batch:
    """The members of one batch, run in order; answers keep that order whatever finishes first."""

    def __init__(
        self,
        request: Callable[[dict[str, Any], Caller | None], Reply],
        turns: _Turns,
        messages: list[Any],
        caller: Caller | None,
        max_bytes: int,
    ) -> None:
        self._request = request
        self._turns = turns
        self._loop = turns.loop
        self._is_waiting = False
        self._messages = messages
        self._caller = caller
        self._max_bytes = max_bytes
        self._bytes = 0
        self._answers: list[bytes] = [b""] * len(messages)
        self._next = 0
        self._open: set[Pending[Complete]] = set()
        self._pending: Pending[Complete] | None = None

    def start(self) -> Reply:
        """Run as far as possible; the array of answers, or a pending reply when members wait."""
        if self._turns.is_busy and len(self._messages) > _SMALL_BATCH:
            self._wait()
        else:
            self._run()
            if self._next == len(self._messages) and not self._open:
                return self._joined()
        self._pending = Pending(self._abandon)
        return self._pending

    def resume(self) -> None:
        """It is this batch's turn."""
        self._is_waiting = False
        self._continue()

    def _wait(self) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self._turns.wait(self)

    def _run(self) -> None:
        end = self._loop.time() + _BATCH_SLICE_S
        while self._next < len(self._messages) and len(self._open) < _BATCH_TASKS:
            position = self._next
            self._next += 1
            message = self._messages[position]
            if type(message) is not dict:
                self._answers[position] = failure(_NULL, INVALID_REQUEST())
                continue
            if self._bytes > self._max_bytes or self._turns.held_bytes > 2 * self._max_bytes:
                self._answers[position] = _too_much(message)
                continue
            reply = self._request(message, self._caller)
            if isinstance(reply, StreamedAnswer):
                reply = self._whole(reply)
            if isinstance(reply, Pending):
                self._open.add(reply)
                reply.deliver = self._receiver(position, reply)
            else:
                self._keep(position, _body_of(reply))
            if self._loop.time() > end and self._next < len(self._messages):
                self._wait()
                return

    def _keep(self, position: int, text: bytes) -> None:
        self._bytes += len(text)
        self._turns.held_bytes += len(text)
        self._answers[position] = text if self._bytes <= self._max_bytes else _too_much(self._messages[position])

    def _receiver(self, position: int, pending: Pending[Complete]) -> Callable[[Complete], None]:
        def receive(reply: Complete) -> None:
            self._open.discard(pending)
            if isinstance(reply, StreamedAnswer):
                whole = self._whole(reply)
                self._open.add(whole)
                whole.deliver = self._receiver(position, whole)
                return
            self._keep(position, _body_of(reply))
            self._continue()

        return receive

    def _whole(self, answer: StreamedAnswer) -> Pending[Complete]:
        """A streamed answer put together: the members of a batch leave in one piece."""
        task = self._loop.create_task(collected(answer))
        pending: Pending[Complete] = Pending(task.cancel)

        def finish(done: asyncio.Task[bytes]) -> None:
            if not done.cancelled():
                error = done.exception()
                pending.resolve(failure(answer.id_text, _known(error)) if error is not None else done.result())

        task.add_done_callback(finish)
        return pending

    def _continue(self) -> None:
        if self._pending is None or self._pending.is_done or self._is_waiting:
            return
        self._run()
        if self._next == len(self._messages) and not self._open:
            self._pending.resolve(self._joined())

    def _abandon(self) -> None:
        self._release()
        for pending in tuple(self._open):
            pending.abandon()

    def _release(self) -> None:
        self._turns.held_bytes -= self._bytes
        self._bytes = 0

    def _joined(self) -> Complete:
        text = b"[" + b",".join(answer for answer in self._answers if answer) + b"]"
        self._release()
        return text if len(text) < _LARGE else Answer(OK, (text,))


def failure(id_text: bytes, error: RpcError) -> bytes:
    """An error answer; `data` only where there is some."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        body["data"] = error.data
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id_text, orjson.dumps(body))


def _too_much(message: dict[str, Any]) -> bytes:
    """The answer to a member for which there is no room in its batch; a notification has none anyway."""
    id_text = _id_text(message, b"")
    return b"" if id_text == b"" else failure(id_text or _NULL, RESPONSE_TOO_LARGE())


def _known(error: BaseException) -> RpcError:
    return as_rpc_error(error) or INTERNAL_ERROR()


def _body_of(reply: bytes | Answer) -> bytes:
    return reply if isinstance(reply, bytes) else reply.join()


def _nobody(told: object) -> None:
    """Who hears of a wait that nobody has asked about."""


@coroutine
def _resume(started: Coroutine[Any, Any, Any], awaited: Any) -> Generator[Any, Any, Any]:
    """The rest of a coroutine that has been driven to its first wait, as something a task can run."""
    while True:
        try:
            sent = yield awaited
        except BaseException as error:  # noqa: BLE001  # cancellation travels into the handler
            advance = partial(started.throw, error)
        else:
            advance = partial(started.send, sent)
        try:
            awaited = advance()
        except StopIteration as stop:
            return stop.value


def _id_text(message: dict[str, Any], body: bytes) -> bytes | None:
    """The id as it goes back: empty for a notification, None when it is of a type that no id can have."""
    request_id = message.get("id", _ABSENT)
    if type(request_id) is int:
        return b"%d" % request_id
    if type(request_id) is str:
        return orjson.dumps(request_id)
    if request_id is _ABSENT:
        return b""
    if request_id is None:
        return _NULL
    if type(request_id) is float:
        try:
            request_id = _numbers_as_text(body)["id"] if body else None
        except RecursionError:
            return None  # the standard parser gives up before orjson does
    return request_id.encode() if type(request_id) is _NumberText else None


class _NumberText(str):
    """A JSON number kept as it was written: fractions and integers wider than 64 bits do not survive a float."""


def _numbers_as_text(body: bytes) -> Any:
    return json.loads(body, parse_float=_NumberText, parse_int=_NumberText)


def _keep_ids(messages: list[Any], body: bytes) -> None:
    """Put the written form of fractional and huge ids back into the members of a batch."""
    try:
        every = _numbers_as_text(body)
    except RecursionError:
        return
    for message, written in zip(messages, every, strict=True):
        if type(message) is dict and type(message.get("id")) is float:
            message["id"] = written["id"]


_PARSE_ANSWER: Final = Answer(BAD_REQUEST, (failure(_NULL, PARSE_ERROR()),))
_INVALID_ANSWER: Final = Answer(BAD_REQUEST, (failure(_NULL, INVALID_REQUEST()),))
_TIMEOUT_ANSWER: Final = Answer(REQUEST_TIMEOUT, (failure(_NULL, TIMEOUT_EXPIRED()),))
