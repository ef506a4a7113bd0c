"""Tests how tunnelled sockets end. tests/integration/test_gateway.py tests tunnels with nodes."""

from __future__ import annotations

import asyncio
import math

import pytest

from ophion.gateway.backends import ServiceAddress, ServiceKind
from ophion.gateway.tunnel import Tunnel, TunnelSlots
from ophion.gateway.upstream import Upstream
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.fair_scheduler import FairScheduler
from tests.unit.rpc.wire import MemoryTransport


class Wire(MemoryTransport):
    """An in-memory transport that also has a socket object."""

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self

    def setsockopt(self, *option: int) -> None:
        """Ignore buffer sizes."""


def test_what_waits_for_its_turn_is_not_written_to_a_node_that_has_gone() -> None:
    """Bytes that wait for a time slice are not written after the node has disconnected, because uvloop reports such a
    write as an error.
    """

    async def main() -> None:
        shared, client, node = SharedResources(scheduler=FairScheduler(turn_s=1e6)), Wire(), Wire()
        upstream = Upstream(ServiceKind.WEBSOCKET, "node", ServiceAddress("127.0.0.1", 1))
        tunnel = Tunnel(client, upstream, b"GET /", b"", lambda closed: None, shared, TunnelSlots(0), 30.0)
        tunnel.begin()
        far = tunnel._made()
        far.connection_made(node)
        far.data_received(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        shared.scheduler.spend(math.inf)
        tunnel.data_received(b"late")
        far.connection_lost(None)
        while len(shared.scheduler):  # noqa: ASYNC110  # the test needs single steps of the loop
            await asyncio.sleep(0)
        assert node.take() == b"GET /"
        assert client.is_closed

    asyncio.run(main())


def test_a_tunnel_that_is_over_does_not_wait_for_ever_for_a_client_that_does_not_read() -> None:
    async def main() -> None:
        client = Wire()
        upstream = Upstream(ServiceKind.WEBSOCKET, "node", ServiceAddress("127.0.0.1", 1))
        tunnel = Tunnel(client, upstream, b"GET /", b"", lambda closed: None, SharedResources(), TunnelSlots(0), 30.0)
        tunnel.begin()
        tunnel.end()
        tunnel.tick(30.0)
        assert client.is_closed
        assert not client.is_aborted
        tunnel.tick(5.0)
        assert client.is_aborted

    asyncio.run(main())


@pytest.mark.parametrize("is_before", [True, False])
def test_a_client_that_does_not_read_before_there_is_a_node_holds_the_node_back(is_before: bool) -> None:
    async def main() -> None:
        client, node = Wire(), Wire()
        upstream = Upstream(ServiceKind.WEBSOCKET, "node", ServiceAddress("127.0.0.1", 1))
        tunnel = Tunnel(
            client, upstream, b"GET /", b"", lambda closed: None, SharedResources(), TunnelSlots(0), 30.0, is_before
        )
        tunnel.begin()
        if not is_before:
            tunnel.pause_writing()
        far = tunnel._made()
        far.connection_made(node)
        assert not node.is_reading_paused, "its answer to the handshake is waited for"
        far.data_received(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
        assert node.is_reading_paused
        tunnel.resume_writing()
        assert not node.is_reading_paused

    asyncio.run(main())
