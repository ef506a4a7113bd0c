"""Tests how a node answers the requests of a worker."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from msgspec import msgpack

from ophion.node.rpc_workers.forwarded_requests import ForwardedRequests, NodeServices
from ophion.node.rpc_workers.frames import FrameKind
from ophion.node.rpc_workers.worker_link import ForwardedRequest, WorkerLink
from ophion.rpc.schema.caller import Caller
from ophion.rpc.transport.http.messages import Request, Response
from ophion.rpc.transport.replies import Answer, Complete, PendingReply
from ophion.runtime.principal import SUBJECT, TENANT
from ophion.testing.wait_for import until


class _Client:
    client = "10.0.0.1"


class _Dispatcher:
    """Answers with the message, its client and its principal."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.abandoned = 0
        self.pending: list[PendingReply[Complete]] = []

    def handle(self, body: bytes, caller: Caller) -> Any:
        if body == b"wait":
            self.pending.append(PendingReply(self._abandon))
            return self.pending[-1]
        if body == b"refuse":
            return Answer(400, (b"refused ", b"it"))
        return f"{self.name} {body.decode()} {caller.client} {SUBJECT.get()} {TENANT.get()}".encode()

    def _abandon(self) -> None:
        self.abandoned += 1


class _Application:
    plain = None

    def respond(self, request: Request) -> Response:
        return Response(503, (request.path, b"?", request.query, request.headers[b"host"]), b"text/plain", b"A: b\r\n")

    def close(self) -> None: ...


class _Stage:
    """A worker and its node in one process."""

    def __init__(self) -> None:
        self.dispatcher = _Dispatcher("counted")
        uncounted: Any = _Dispatcher("uncounted")
        dispatcher: Any = self.dispatcher
        services = NodeServices(dispatcher, uncounted, _Application(), 100)
        self.link = WorkerLink(lambda: None, lambda: None, lambda: None)
        self.requests = ForwardedRequests(self._to_worker, lambda: services)
        self.link.frames.send = self._to_node  # type: ignore[method-assign]

    def _to_node(self, kind: FrameKind, number: int = 0, payload: bytes = b"") -> None:
        if kind is FrameKind.CANCEL:
            self.requests.cancel(number)
            return
        handle = self.requests.request if kind is FrameKind.REQUEST else self.requests.path
        asyncio.get_running_loop().call_soon(handle, number, payload)

    def _to_worker(self, kind: FrameKind, number: int, payload: bytes) -> None:
        self.link._receive(kind, number, payload)

    async def answer(self, pending: PendingReply[Any]) -> Any:
        found: list[Any] = []
        pending.deliver = found.append
        await until(lambda: found)
        return found[0]


def test_a_request_runs_as_its_client_and_is_counted_once() -> None:
    async def ask() -> None:
        stage = _Stage()
        tokens = SUBJECT.set("alice"), TENANT.set("key")
        forwarded = [stage.link.forward(b"text", _Client(), is_counted) for is_counted in (False, True)]
        SUBJECT.reset(tokens[0])
        TENANT.reset(tokens[1])
        plain = stage.link.forward(b"text", None, False)
        answers: dict[int, Any] = {}
        for number, pending in enumerate([*forwarded, plain]):
            pending.deliver = partial(answers.__setitem__, number)
        await until(lambda: len(answers) == 3)
        assert list(answers.values()) == [
            b"counted text 10.0.0.1 alice key",
            b"uncounted text 10.0.0.1 alice key",
            b"counted text  None None",
        ]
        refused = await stage.answer(stage.link.forward(b"refuse", None, False))
        assert refused == Answer(400, (b"refused it",))

    asyncio.run(ask())


def test_requests_end_with_their_clients_and_with_the_worker() -> None:
    async def ask() -> None:
        stage = _Stage()
        waiting = [stage.link.forward(b"wait", None, False) for _ in range(3)]
        await until(lambda: len(stage.dispatcher.pending) == 3)
        waiting[0].abandon()
        assert stage.dispatcher.abandoned == 1
        stage.dispatcher.pending[1].resolve(b"late")
        assert await asyncio.sleep(0) is None
        stage.requests.close()
        assert stage.dispatcher.abandoned == 2

    asyncio.run(ask())


def test_other_paths_are_answered_by_the_node() -> None:
    async def ask() -> None:
        stage = _Stage()
        request = Request(b"GET", b"/readiness", b"minPeers=1", {b"host": b"here"}, b"", "10.0.0.1")
        found = await stage.answer(stage.link.forward_path(request))
        assert found == Response(503, (b"/readiness?minPeers=1here",), b"text/plain", b"A: b\r\n")

    asyncio.run(ask())


def test_a_request_keeps_its_format() -> None:
    request = ForwardedRequest(b"text", "client", None, "tenant", True)
    assert msgpack.decode(msgpack.encode(request), type=ForwardedRequest) == request
