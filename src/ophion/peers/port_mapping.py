"""`PortMapping`: maps the peer port on the router with UPnP while the node runs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from ophion.peers.upnp import SEARCH_ADDRESS, Gateway, GatewayError, find_gateway

log = logging.getLogger(__name__)

_PROTOCOLS: Final = ("TCP", "UDP")
_RELEASE_TIMEOUT_S: Final = 2.0


class PortMapping:
    """Requests the port mapping from the router when the service starts, and removes the mapping when the service
    stops.
    """

    def __init__(self, interface: str, port: int, search_address: tuple[str, int] = SEARCH_ADDRESS) -> None:
        self._interface = interface
        self._port = port
        self._search_address = search_address
        self._gateway: Gateway | None = None

    async def ask(self) -> str | None:
        """Map the port on the router. Returns the router's external address, or None after a logged failure."""
        gateway = await find_gateway(self._interface, self._search_address)
        if gateway is None:
            log.warning("no UPnP gateway answered; the advertised address is unchanged. Check --nat-method")
            return None
        try:
            local = await gateway.local_ip()
            # set `_gateway` before the first mapping, so that `release` also removes mappings after a failure
            self._gateway = gateway
            for protocol in _PROTOCOLS:
                await gateway.map(protocol, self._port, local)
            external = await gateway.external_ip()
        except (OSError, GatewayError) as error:
            log.warning("UPnP failed; the advertised address is unchanged error=%s", error)
            return None
        log.info("UPnP port mapped port=%d", self._port)
        return external

    async def release(self) -> None:
        """Remove the port mappings. If the router does not answer before the timeout, the mappings stay."""
        if self._gateway is None:
            return
        with contextlib.suppress(TimeoutError, GatewayError, OSError):
            async with asyncio.timeout(_RELEASE_TIMEOUT_S):
                for protocol in _PROTOCOLS:
                    await self._gateway.unmap(protocol, self._port)
