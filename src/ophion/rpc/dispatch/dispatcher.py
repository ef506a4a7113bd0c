"""Bytes in, bytes out: JSON-RPC 2.0 without any knowledge of HTTP or WebSocket.

    body -> parse -> envelope -> method table -> decode params -> handler -> encode -> envelope -> bytes

`Dispatcher.handle` answers a request in the turn of the loop in which it arrived whenever the handler does not wait:
no task is made, nothing is scheduled, and the reply comes back as plain `bytes`. A coroutine is driven to its first
wait by hand and becomes a task only there. What could not be finished is returned as a `Pending`, which calls back
once (transport/replies.py).

This is one of the five places of the node that catch everything: a handler's failure is an answer, never the end of the
node.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from types import CoroutineType
from typing import Any, Final

import orjson

from ophion.rpc.dispatch.batches import Batch, Turns
from ophion.rpc.dispatch.deadlines import Deadlines
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.dispatch.modern_words import modern
from ophion.rpc.dispatch.request_ids import keep_ids, text_of_id
from ophion.rpc.dispatch.wording import ErrorWording
from ophion.rpc.errors import (
    BATCH_TOO_LARGE,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NULL,
    PARSE_ERROR,
    RESPONSE_TOO_LARGE,
    STOPS,
    UNAUTHORIZED,
    as_rpc_error,
    failure,
)
from ophion.rpc.language.registry import Bound, Caller
from ophion.rpc.transport.replies import BAD_REQUEST, LARGE, OK, UNAUTHORIZED_STATUS, Answer, Complete, Pending, Reply
from ophion.rpc.transport.streaming import Streamed, StreamedAnswer
from ophion.runtime.driven import driven

logger = logging.getLogger(__name__)

_NO_PARAMS: Final[Sequence[Any]] = ()
_NOT_JSON: Final = Answer(BAD_REQUEST, (failure(NULL, PARSE_ERROR()),))
_INVALID: Final = Answer(BAD_REQUEST, (failure(NULL, INVALID_REQUEST()),))


class Dispatcher:
    """One method table at work."""

    def __init__(
        self, table: Mapping[str, Bound], loop: asyncio.AbstractEventLoop, limits: DispatchLimits | None = None
    ) -> None:
        self._table = table
        self._loop = loop
        self._limits = limits or DispatchLimits()
        self._error_status = self._limits.error_status
        self._turns = Turns(loop)
        self._deadlines = Deadlines(loop, self._limits.timeout_s)

    def handle(self, body: bytes, caller: Caller | None = None) -> Reply:
        """Answer one message: a request, a notification (an empty answer) or a batch."""
        try:
            message = orjson.loads(body)
        except orjson.JSONDecodeError:
            return _NOT_JSON
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
            self._deadlines.watch(reply)
        return reply

    def close(self) -> None:
        """Give up everything that is still waiting."""
        self._deadlines.close()

    # --- one request -----------------------------------------------------------------------------

    def _call(self, bound: Bound, params: Sequence[Any], caller: Caller | None, id_text: bytes) -> Reply:
        try:
            invoke, encode, may_wait, _ = bound
            value = invoke(params, caller)
            if may_wait:
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
            return _NOT_JSON
        if type(reply) is Pending:
            self._deadlines.watch(reply)
        return reply

    def _request(self, message: dict[str, Any], caller: Caller | None, body: bytes = b"") -> Reply:
        """One message of any form; `body` is its text, which an id that is no integer may need."""
        written = text_of_id(message, body)
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

    def _later(self, future: asyncio.Future[Any], bound: Bound, id_text: bytes) -> Pending[Complete]:
        pending: Pending[Complete] = Pending(future.cancel)

        def finish(done: asyncio.Future[Any]) -> None:
            if pending.is_done or done.cancelled():
                return
            try:
                result = bound.encode(done.result())
            except STOPS:
                raise
            except BaseException as error:  # noqa: BLE001  # as above
                pending.resolve(self._failed(error, bound.name, id_text))
            else:
                pending.resolve(
                    b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id_text, result)
                    if len(result) < LARGE
                    else self._large(id_text, result)
                )

        future.add_done_callback(finish)
        return pending

    def _failed(self, error: BaseException, name: str, id_text: bytes) -> Complete:
        known = as_rpc_error(error)
        if known is None:
            logger.error("rpc handler failed method=%s", name, exc_info=error)
            known = INTERNAL_ERROR()
        if self._limits.wording is ErrorWording.MODERN:
            known = modern(error, known, name)
        text = failure(id_text, known)
        if known.code == UNAUTHORIZED.code:
            return Answer(UNAUTHORIZED_STATUS, (text,))
        return text if self._error_status == OK else Answer(self._error_status, (text,))

    def _batch(self, messages: list[Any], body: bytes, caller: Caller | None) -> Reply:
        if not messages:
            return _INVALID
        if len(messages) > self._limits.max_batch:
            return failure(NULL, BATCH_TOO_LARGE())
        if any(type(message) is dict and type(message.get("id")) is float for message in messages):
            keep_ids(messages, body)
        return Batch(self._request, self._turns, messages, caller, self._limits.max_response_bytes).start()
