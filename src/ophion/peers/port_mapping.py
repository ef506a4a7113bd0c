"""`PortMapping`: the port of this node on the router in front of it, for as long as the node runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from ophion.peers.upnp import SEARCH_ADDRESS, Gateway, GatewayError, find_gateway

log = logging.getLogger(__name__)

_PROTOCOLS: Final = ("TCP", "UDP")
_RELEASE_S: Final = 2.0


class PortMapping:
    """Asks the router to send peers here, and takes that back at the end."""

    def __init__(self, interface: str, port: int, search_address: tuple[str, int] = SEARCH_ADDRESS) -> None:
        self._interface = interface
        self._port = port
        self._search_address = search_address
        self._gateway: Gateway | None = None

    async def ask(self) -> str | None:
        """The address that the world sees; None where no router lets peers in, which is logged and no error."""
        gateway = await find_gateway(self._interface, self._search_address)
        if gateway is None:
            log.warning("No UPnP gateway answered; peers are told the address as it is. Is --nat-method=UPNP right?")
            return None
        try:
            inside = await gateway.local_ip()
            # known before the first mapping: what was mapped is taken back, whatever comes between
            self._gateway = gateway
            for protocol in _PROTOCOLS:
                await gateway.map(protocol, self._port, inside)
            external = await gateway.external_ip()
        except (OSError, GatewayError) as error:
            log.warning("UPnP: %s; peers are told the address as it is", error)
            return None
        log.info("UPnP: the router maps port %d", self._port)
        return external

    async def release(self) -> None:
        """Take the mappings back, if the router answers in time."""
        if self._gateway is None:
            return
        with contextlib.suppress(TimeoutError, GatewayError, OSError):
            async with asyncio.timeout(_RELEASE_S):
                for protocol in _PROTOCOLS:
                    await self._gateway.unmap(protocol, self._port)
