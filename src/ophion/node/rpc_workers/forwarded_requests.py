"""Requests that workers forward to the node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec import Struct, msgpack

from ophion.node.rpc_workers.frames import FrameKind
from ophion.node.rpc_workers.worker_link import ForwardedAnswer, ForwardedRequest, ForwardedResponse
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.transport.http.messages import Request, Response
from ophion.rpc.transport.http.policy import Application
from ophion.rpc.transport.replies import OK, Answer, Complete, PendingReply, Reply, whole
from ophion.rpc.transport.streaming import StreamedAnswer
from ophion.runtime.principal import SUBJECT, TENANT

_encode = msgpack.Encoder().encode
_decode_request = msgpack.Decoder(ForwardedRequest).decode
_decode_path = msgpack.Decoder(Request).decode


class _RemoteCaller(Struct, frozen=True):
    """The client of a worker, as handlers see it."""

    client: str


class NodeServices(Struct, frozen=True):
    """The parts of the node that answer requests of workers."""

    dispatcher: Dispatcher
    """Dispatcher of the HTTP port without authentication, because the worker has checked the token."""
    uncounted: Dispatcher
    """The same dispatcher without metrics, for requests that the worker has counted already."""
    application: Application
    """Answers HTTP requests for paths other than the JSON-RPC path."""
    max_response_bytes: int


class ForwardedRequests:
    """The open requests of one worker."""

    def __init__(self, send: Callable[[FrameKind, int, bytes], None], services: Callable[[], NodeServices]) -> None:
        self._send = send
        self._services = services
        self._open: dict[int, PendingReply[Complete] | PendingReply[Response]] = {}

    def request(self, number: int, payload: bytes) -> None:
        """Answer a JSON-RPC message with the principal of its client."""
        request = _decode_request(payload)
        subject, tenant = SUBJECT.set(request.subject), TENANT.set(request.tenant)
        try:
            services = self._services()
            dispatcher = services.uncounted if request.is_counted else services.dispatcher
            reply: Reply = dispatcher.handle(request.text, _RemoteCaller(request.client))
            if isinstance(reply, PendingReply):
                self._open[number] = reply
                reply.deliver = partial(self._deliver, number)
            else:
                self._deliver(number, reply)
        finally:
            SUBJECT.reset(subject)
            TENANT.reset(tenant)

    def path(self, number: int, payload: bytes) -> None:
        """Answer an HTTP request for a path other than the JSON-RPC path."""
        found = self._services().application.respond(_decode_path(payload))
        if isinstance(found, PendingReply):
            self._open[number] = found
            found.deliver = partial(self._deliver_path, number)
        else:
            self._deliver_path(number, found)

    def cancel(self, number: int) -> None:
        """Abandon a request whose client has disconnected."""
        pending = self._open.pop(number, None)
        if pending is not None:
            pending.abandon()

    def close(self) -> None:
        """Abandon all requests of a worker that has ended."""
        for number in tuple(self._open):
            self.cancel(number)

    def _deliver(self, number: int, reply: Complete) -> None:
        self._open.pop(number, None)
        if isinstance(reply, StreamedAnswer):
            collected = whole(reply, self._services().max_response_bytes)
            self._open[number] = collected
            collected.deliver = partial(self._deliver, number)
            return
        answer = (
            ForwardedAnswer(reply.status, reply.join()) if isinstance(reply, Answer) else ForwardedAnswer(OK, reply)
        )
        self._send(FrameKind.ANSWER, number, _encode(answer))

    def _deliver_path(self, number: int, found: object) -> None:
        self._open.pop(number, None)
        if isinstance(found, Response):
            body = b"".join(bytes(piece) for piece in found.body)
            response = ForwardedResponse(found.status, body, found.content_type, found.headers, found.reason)
        else:
            answer = found.join() if isinstance(found, Answer) else found if isinstance(found, bytes) else b""
            response = ForwardedResponse(OK, answer, b"application/json", b"", None)
        self._send(FrameKind.ANSWER, number, _encode(response))
