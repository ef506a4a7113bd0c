"""The connection of a worker to its node: forwards requests and delivers the answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count

from msgspec import Struct, msgpack

from ophion.node.rpc_workers.frames import FrameKind, FrameLink
from ophion.rpc.schema.registry import Caller, client_of
from ophion.rpc.transport.http.messages import Request, Response
from ophion.rpc.transport.replies import OK, Answer, Complete, PendingReply
from ophion.runtime.principal import SUBJECT, TENANT


class ForwardedRequest(Struct, frozen=True, array_like=True):
    """A JSON-RPC message with the identity of its client, which the worker has checked."""

    text: bytes
    client: str
    subject: str | None
    tenant: str | None
    is_counted: bool
    """Whether the metrics of the worker count the request."""


class ForwardedAnswer(Struct, frozen=True, array_like=True):
    """The answer of the node to a JSON-RPC message."""

    status: int
    body: bytes


class ForwardedResponse(Struct, frozen=True, array_like=True):
    """The answer of the node to an HTTP request for another path."""

    status: int
    body: bytes
    content_type: bytes | None
    headers: bytes
    reason: bytes | None


_encode = msgpack.Encoder().encode
_decode_answer = msgpack.Decoder(ForwardedAnswer).decode
_decode_response = msgpack.Decoder(ForwardedResponse).decode


class WorkerLink:
    """Requests of this worker that the node has not answered yet."""

    def __init__(
        self,
        head_changed: Callable[[], None],
        stop: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        """Create a link. `stop` is called when the node asks the worker to stop, and `lost` when the node has ended."""
        self.frames = FrameLink(self._receive, lost)
        self._head_changed = head_changed
        self._stop = stop
        self._numbers = count(1)
        self._waiting: dict[int, Callable[[bytes], None]] = {}

    def forward(self, text: bytes, caller: Caller | None, is_counted: bool) -> PendingReply[Complete]:
        """Send a JSON-RPC message to the node. `is_counted` tells whether this process has counted the request."""
        number = next(self._numbers)
        pending: PendingReply[Complete] = PendingReply(partial(self._cancel, number))
        pending.has_timeout = False  # the node applies its own timeout, so none is needed here
        pending.weight = len(text)
        self._waiting[number] = lambda payload: pending.resolve(_reply(payload))
        request = ForwardedRequest(text, client_of(caller), SUBJECT.get(), TENANT.get(), is_counted)
        self.frames.send(FrameKind.REQUEST, number, _encode(request))
        return pending

    def forward_path(self, request: Request) -> PendingReply[Response]:
        """Send an HTTP request for a path other than the JSON-RPC path to the node."""
        number = next(self._numbers)
        pending: PendingReply[Response] = PendingReply(partial(self._cancel, number))

        def deliver(payload: bytes) -> None:
            found = _decode_response(payload)
            body = (found.body,) if found.body else ()
            pending.resolve(Response(found.status, body, found.content_type, found.headers, found.reason))

        self._waiting[number] = deliver
        self.frames.send(FrameKind.PATH, number, _encode(request))
        return pending

    def _receive(self, kind: FrameKind, number: int, payload: bytes) -> None:
        if kind is FrameKind.ANSWER:
            deliver = self._waiting.pop(number, None)
            if deliver is not None:
                # the node may have answered from a head that this process has not read yet
                self._head_changed()
                deliver(payload)
        elif kind is FrameKind.HEAD:
            self._head_changed()
        elif kind is FrameKind.STOP:
            self._stop()

    def _cancel(self, number: int) -> None:
        if self._waiting.pop(number, None) is not None:
            self.frames.send(FrameKind.CANCEL, number)


def _reply(payload: bytes) -> Complete:
    answer = _decode_answer(payload)
    return answer.body if answer.status == OK else Answer(answer.status, (answer.body,))
