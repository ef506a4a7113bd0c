"""Opens the TCP port and, with discovery, the UDP port of the same number."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ophion.peers.connection.context import PeerContext
from ophion.peers.connection.listener import Listener
from ophion.peers.discovery.discovery import Discovery
from ophion.peers.discovery.udp import UdpSocket
from ophion.peers.inbound import InboundConnections
from ophion.peers.settings import PeerSettings, listen_error

_MAX_PORT_ATTEMPTS: Final = 10
"""Limit of free ports to try when the configured port is 0."""


async def open_ports(
    settings: PeerSettings,
    context: PeerContext,
    inbound: InboundConnections,
    discovery: Discovery | None,
    is_known: Callable[[str], bool],
) -> tuple[Listener, UdpSocket | None]:
    """Open both ports; raises `PeerListenError`. `is_known` returns whether an IP belongs to a known node."""
    attempts = _MAX_PORT_ATTEMPTS if settings.port == 0 else 1
    while True:
        attempts -= 1
        udp = None if discovery is None else UdpSocket(context.scheduler, context.clock, discovery.received, is_known)
        try:
            server = Listener(settings.interface, settings.port, inbound.arrived, inbound.is_full)
            if udp is not None:
                await _bind(udp, settings.interface, server)
            return server, udp
        except OSError as error:
            # without a fixed port, try again, because a port that is free for TCP may be in use for UDP
            if not attempts:
                raise listen_error(settings.interface, settings.port, error) from None


async def _bind(udp: UdpSocket, interface: str, server: Listener) -> None:
    try:
        await asyncio.get_running_loop().create_datagram_endpoint(lambda: udp, local_addr=(interface, server.port))
    except OSError:
        server.close()
        raise
