"""The gateway's fast path gives the same answers as its slow path, for any event before the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ophion.gateway import connection as connection_module
from ophion.gateway.connection import GatewayConnection
from ophion.gateway.fast_path import RelayPath
from ophion.gateway.routing import PathRouter
from ophion.gateway.tunnel import TunnelSlots
from ophion.gateway.upstream import UpstreamConnection
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.policy import HttpLimits, HttpPolicy
from ophion.rpc.transport.origins import OriginList
from tests.unit.gateway.test_routing import SITE
from tests.unit.rpc.wire import MemoryTransport, patient

BODY = b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
REQUEST = (
    b"POST /jsonrpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    % len(BODY)
) + BODY
PLAIN = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 15\r\n\r\n{"result":"0x1"'
OTHER = b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone"


class SlowPath(RelayPath):
    """A fast path that declines every request."""

    __slots__ = ()

    def relay(self, data: bytes) -> bool:
        return False


class Stage:
    """A gateway connection between two in-memory transports."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        paths = PathRouter(SITE, lambda path, headers: None, loop)
        policy = HttpPolicy(
            paths,
            HostList(["localhost"]),
            OriginList([]),
            HttpLimits(),
            PlainHeads(),
            lambda opened: True,
            lambda closed: None,
            shared=patient(),
        )
        route = paths.route(b"/jsonrpc")
        assert isinstance(route, tuple)
        self.paths, self.upstream = paths, route[0]
        self.connection = GatewayConnection(policy, paths, lambda http, tunnel: None, TunnelSlots())
        self.client = MemoryTransport()
        self.connection.connection_made(self.client)
        self.nodes: list[tuple[UpstreamConnection, MemoryTransport]] = []

    def add_node(self) -> None:
        one, transport = UpstreamConnection(self.upstream), MemoryTransport()
        one._transport = transport
        self.upstream._all.add(one)
        self.nodes.append((one, transport))
        self.upstream.free(one)


Events = Callable[[Stage], None]


def pause(stage: Stage) -> None:
    stage.connection.pause_writing()
    stage.connection.resume_writing()


def tick(stage: Stage) -> None:
    stage.connection._http.tick(1.0)


def more(stage: Stage) -> None:
    stage.connection.data_received(REQUEST)


def part(stage: Stage) -> None:
    stage.connection.data_received(REQUEST[:30])


def end(stage: Stage) -> None:
    stage.connection.eof_received()


def nothing(stage: Stage) -> None:
    """Do nothing."""


def lose_node(stage: Stage) -> None:
    stage.nodes[-1][0].connection_lost(None)


@pytest.mark.parametrize("answer", [PLAIN, OTHER, PLAIN[:40]])
@pytest.mark.parametrize("event", [nothing, pause, tick, more, part, end, lose_node])
def test_both_paths_give_the_same_bytes(answer: bytes, event: Events, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(path: type[RelayPath]) -> tuple[bytes, list[bytes], bool, float]:
        monkeypatch.setattr(connection_module, "RelayPath", path)
        stage = Stage()
        for _ in range(2):  # the first request fills the cache of HTTP request heads
            stage.add_node()
        stage.connection.data_received(REQUEST)
        stage.nodes[1][0].data_received(PLAIN)
        stage.connection.data_received(REQUEST)
        is_relayed = stage.connection._http.state.name == "RELAYING"
        assert is_relayed is (path is RelayPath)
        idleness = stage.connection._http.idleness()
        event(stage)
        for one, _ in stage.nodes:
            if one.is_asked and not one.is_lost:
                one.data_received(answer)
        for _ in range(5):
            await asyncio.sleep(0)
        sent = [transport.take() for _, transport in stage.nodes]
        closed = stage.client.is_closed
        stage.connection.connection_lost(None)
        stage.paths.close()
        return stage.client.take(), sent, closed, idleness

    assert asyncio.run(play(RelayPath)) == asyncio.run(play(SlowPath))
