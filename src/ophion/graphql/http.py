"""GraphQL over HTTP: paths, methods, request formats and status codes (graphql.md 1).

A request runs on the event loop if the engine estimates that it is small. Otherwise it runs in the read lane (worker
threads), where the engine releases the GIL. The measured cost is stored with the plan.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias, TypeVar

import orjson

from ophion.graphql.limits import GraphqlLimits
from ophion.graphql.node_requests import replies_to
from ophion.graphql.query_editor import PAGE_PATH, page_file
from ophion.graphql.response_buffer import ResponseBuffer
from ophion.native.graphql import GraphqlEngine, GraphqlQuery, GraphqlRound, GraphqlText
from ophion.rpc.errors import STOPS, as_rpc_error, clear_traceback
from ophion.rpc.services.context import RpcContext
from ophion.rpc.transport.http.messages import JSON, Request, Response, media_type
from ophion.rpc.transport.http.policy import Result
from ophion.rpc.transport.replies import PendingReply
from ophion.runtime.thread_pools import LaneFull

logger = logging.getLogger(__name__)

GRAPHQL_JSON: Final = b"application/json; charset=utf-8"
QUERY_PERMISSION: Final = "eth_graphql"
SEND_PERMISSION: Final = "eth_sendRawTransaction"

_PATHS: Final = frozenset({b"/graphql", b"/graphql/"})
_LOGIN_PATH: Final = b"/login"
_LONG_REQUEST: Final = 8 * 1024
"""Maximum size in bytes of a request that is parsed on the event loop. Longer requests may take milliseconds to
validate.
"""
_MAX_ROUNDS: Final = 128
"""Maximum number of open requests that wait for calls, estimates or transactions."""
_UNAUTHORIZED: Final = Response(
    401,
    (b'{"errors":[{"message":"Unauthorized","extensions":{"errorCode":-40100,"errorMessage":"Unauthorized"}}]}',),
    GRAPHQL_JSON,
)
_NOT_BY_GET: Final = Response(
    405, (b'{"errors":[{"message":"Mutations require POST"}]}',), GRAPHQL_JSON, b"Allow: POST, OPTIONS\r\n"
)
_CALL_HEADERS: Final = {b"content-type": JSON}
_TIMEOUT: Final = Response(408, (b'{"errors":[{"message":"Timeout expired"}]}',), GRAPHQL_JSON)

Answered: TypeAlias = tuple[int, bytes | GraphqlText]
"""Status and body of a response."""
Made = TypeVar("Made")

Guard = Callable[[bytes | None, str], bool]
"""Returns whether a request with this `Authorization` header may use a method."""
Login = Callable[[Request], Result]
"""A function that answers a login request."""


class GraphqlApplication:
    """Handles the HTTP requests of the GraphQL port. Passes queries to the engine in the Rust extension."""

    call_path: Final = b"/graphql"
    call_kind: Final = JSON
    """Content type of a JSON request. Bodies of any other type are GraphQL documents."""

    def __init__(
        self,
        context: RpcContext,
        engine: GraphqlEngine,
        loop: asyncio.AbstractEventLoop,
        timeout_s: float,
        limits: GraphqlLimits,
        guard: Guard | None = None,
        login: Login | None = None,
    ) -> None:
        self.plain: Callable[..., Result] | None = self._call if guard is None else None
        self._context = context
        self._queries = context.queries
        self._store = context.queries.store
        self._engine = engine
        self._loop = loop
        self._timeout_s = timeout_s
        self._guard = guard
        self._login = login
        self._buffer = ResponseBuffer(loop, limits.max_held_bytes, limits.max_answer_bytes, limits.max_heavy)
        self._waiting: set[PendingReply[Response]] = set()
        self._open_rounds = 0

    def respond(self, request: Request) -> Result:
        """Respond to a request that has passed the host and origin checks."""
        try:
            if request.path not in _PATHS:
                return self._elsewhere(request)
            if request.method == b"POST":
                return self._post(request)
            if request.method == b"GET":
                return self._get(request)
        except STOPS:
            raise
        except BaseException as error:  # noqa: BLE001  # no error may stop the node
            return _failed(error)
        return Response(405, headers=b"Allow: GET, POST, OPTIONS\r\n")

    def _call(self, body: bytes, _connection: object) -> Result:
        """Fast path of `respond`: respond to a JSON request with a known HTTP head and without a token."""
        return self.respond(Request(b"POST", self.call_path, b"", _CALL_HEADERS, body))

    def close(self) -> None:
        """Cancel the open requests."""
        for pending in tuple(self._waiting):
            pending.abandon()

    # --- request formats -------------------------------------------------------------------------

    def _elsewhere(self, request: Request) -> Result:
        """Respond to paths other than `/graphql`: the root for load balancers, the login, and files of the
        query page.
        """
        is_get = request.method == b"GET"
        if request.path == b"/":
            if is_get and not request.wants_html:
                return Response(201)
            if is_get or request.method == b"POST":
                return Response(308, headers=b"Location: /graphql\r\n")
        if request.path == _LOGIN_PATH and request.method == b"POST" and self._login is not None:
            return self._login(request)
        page = page_file(request.path, request.headers)
        if page is None:
            return Response(404)
        return page if is_get else Response(405, headers=b"Allow: GET\r\n")

    def _get(self, request: Request) -> Result:
        try:
            fields = request.fields()
        except ValueError:
            return _bad("the query has too many fields")
        if "query" not in fields and request.wants_html:
            page = page_file(PAGE_PATH, request.headers)
            assert page is not None, "the page is part of this package"
            return page
        document, operation, variables = (
            fields.get(name, [None])[-1] for name in ("query", "operationName", "variables")
        )
        read = self._engine.read_parts
        return self._read(request, len(request.query), lambda: read(document or "", operation or None, variables))

    def _post(self, request: Request) -> Result:
        body = request.body
        if media_type(request.headers) == self.call_kind:
            return self._read(request, len(body), lambda: self._engine.read(body))
        try:
            document = body.decode()
        except UnicodeDecodeError:
            return _bad("the document is not UTF-8 text")
        return self._read(request, len(body), lambda: self._engine.read_parts(document, None, None))

    def _read(self, request: Request, size: int, read: Callable[[], GraphqlQuery | bytes]) -> Result:
        if self._guard is not None and not self._guard(request.headers.get(b"authorization"), QUERY_PERMISSION):
            return _UNAUTHORIZED
        if size > _LONG_REQUEST:
            return self._later(self._read_and_run(request, read))
        return self._checked(request, read())

    def _checked(self, request: Request, query: GraphqlQuery | bytes) -> Response | PendingReply[Response]:
        if isinstance(query, bytes):
            return Response(400, (query,), GRAPHQL_JSON)
        if query.is_mutation:
            if request.method != b"POST":
                return _NOT_BY_GET
            if self._guard is not None and not self._guard(request.headers.get(b"authorization"), SEND_PERMISSION):
                return _UNAUTHORIZED
        return self._answer(query)

    # --- execution -------------------------------------------------------------------------------

    def _answer(self, query: GraphqlQuery) -> Response | PendingReply[Response]:
        needs = query.needs_gas_price or query.needs_priority_fee or query.needs_pool
        if needs or query.is_heavy:
            return self._later(self._run(query))
        queries = self._queries
        result = query.run(
            self._store,
            queries.head_hash,
            queries.head_number,
            True,
            self._timeout_s,
            next_base_fee=queries.next_base_fee() if query.needs_next_base_fee else None,
            syncing=self._syncing(),
            named=self._named(query),
            oldest_state=queries.chain.oldest_state,
        )
        if isinstance(result, tuple):
            return _response(*result)
        if result is None:
            return self._later(self._run(query))
        return self._later(self._resume(result))

    async def _read_and_run(self, request: Request, read: Callable[[], GraphqlQuery | bytes]) -> Response:
        result = self._checked(request, await self._context.lanes.read.run(read))
        if isinstance(result, Response):
            return result
        done: asyncio.Future[Response] = self._loop.create_future()
        result.deliver = done.set_result
        try:
            return await done
        finally:
            result.abandon()

    async def _run(self, query: GraphqlQuery) -> Response:
        context, queries = self._context, self._queries
        gas_price = await context.fees.gas_price() if query.needs_gas_price else None
        priority_fee = await context.fees.max_priority_fee() if query.needs_priority_fee else None
        pool = [pooled.transaction for pooled in context.pool.transactions()] if query.needs_pool else []
        head_hash, head_number, oldest_state = queries.head_hash, queries.head_number, queries.chain.oldest_state
        next_base_fee = queries.next_base_fee() if query.needs_next_base_fee else None
        syncing, named = self._syncing(), self._named(query)

        def run(at_once: bool) -> Answered | GraphqlRound | None:
            return query.run(
                self._store,
                head_hash,
                head_number,
                at_once,
                self._timeout_s,
                gas_price=gas_price,
                priority_fee=priority_fee,
                next_base_fee=next_base_fee,
                syncing=syncing,
                pool=pool,
                named=named,
                oldest_state=oldest_state,
            )

        result = None if query.is_heavy else run(True)
        if result is None:
            result = await self._made(lambda: run(False))
        assert result is not None, "a run without a small budget has an outcome"
        return await self._resume(result) if isinstance(result, GraphqlRound) else _response(*result)

    async def _resume(self, waiting: GraphqlRound) -> Response:
        """Resume a request after the node has run its calls, estimates and transactions. Only a few requests may wait,
        because each holds a database snapshot.
        """
        if self._open_rounds >= _MAX_ROUNDS:
            raise LaneFull("graphql", _MAX_ROUNDS)
        self._open_rounds += 1
        try:
            replies = await replies_to(self._context, waiting.asks)
            result = await self._made(lambda: waiting.resume(replies))
            return _response(*result)
        finally:
            self._open_rounds -= 1

    async def _made(self, make: Callable[[], Made]) -> Made:
        """Build a response in the read lane (worker threads), after the response buffer has admitted it."""
        buffer = self._buffer
        await buffer.enter()

        def leave(done: asyncio.Future[Made]) -> None:
            result = None if done.cancelled() or done.exception() is not None else done.result()
            text = result[1] if isinstance(result, tuple) else None
            buffer.leave(text if isinstance(text, GraphqlText) else None)

        try:
            future = self._context.lanes.read.submit(make)
        except LaneFull:
            buffer.leave(None)
            raise
        future.add_done_callback(leave)
        return await future  # if the client disconnects, this task is cancelled and the worker thread stops the job

    def _syncing(self) -> tuple[int, int, int] | None:
        status = self._context.sync_status()
        return None if status is None else (status.starting_block, status.current_block, status.highest_block)

    def _named(self, query: GraphqlQuery) -> list[Any]:
        """Return the pending transactions of the pool whose hashes the request names."""
        found = [self._context.pool.get(hash) for hash in query.transactions]
        return [pooled.transaction for pooled in found if pooled is not None]

    def _later(self, work: Coroutine[Any, Any, Response]) -> PendingReply[Response]:
        task = self._loop.create_task(work)
        pending: PendingReply[Response] = PendingReply(task.cancel)
        self._waiting.add(pending)

        def expire() -> None:
            if not pending.is_done:
                pending.resolve(_TIMEOUT)
                task.cancel()

        timer = self._loop.call_later(self._timeout_s, expire)

        def finish(done: asyncio.Task[Response]) -> None:
            timer.cancel()
            self._waiting.discard(pending)
            if done.cancelled() or pending.is_done:
                return
            error = done.exception()
            pending.resolve(done.result() if error is None else _failed(error))

        task.add_done_callback(finish)
        return pending


def _response(status: int, body: bytes | GraphqlText) -> Response:
    return Response(status, (body if isinstance(body, bytes) else body.view(),), GRAPHQL_JSON)


def _bad(message: str) -> Response:
    return _response(400, orjson.dumps({"errors": [{"message": message}]}))


def _failed(error: BaseException) -> Response:
    """Return the response to an engine failure: status 500, or 503 when a queue is full, with a message of one line."""
    known = as_rpc_error(error)
    if known is None:
        logger.error("graphql request failed", exc_info=error)
        return _response(500, b'{"errors":[{"message":"Internal error"}]}')
    clear_traceback(error)
    entry = {"message": known.message, "extensions": {"errorCode": known.code, "errorMessage": known.message}}
    status = 503 if isinstance(error, LaneFull) else 500
    return _response(status, orjson.dumps({"errors": [entry]}))
