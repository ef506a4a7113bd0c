"""Simulates a router on loopback, with correct and incorrect answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ophion.peers.upnp import Gateway, GatewayError, find_gateway

SERVICE = "urn:schemas-upnp-org:service:WANIPConnection:1"
DESCRIPTION = f"""<?xml version="1.0"?><root><device><serviceList>
<service><serviceType>urn:schemas-upnp-org:service:Layer3Forwarding:1</serviceType><controlURL>/l3</controlURL></service>
<service><serviceType>{SERVICE}</serviceType><serviceId>x</serviceId><controlURL>/control</controlURL></service>
</serviceList></device></root>"""


class Router(asyncio.DatagramProtocol):
    """Answers searches, describes itself, and records mapping requests."""

    def __init__(self) -> None:
        self.location = "http://127.0.0.1:{port}/description.xml"
        self.description = DESCRIPTION
        self.status = "200 OK"
        self.external = "203.0.113.7"
        self.refuses: str | None = None
        """Name of an action that the router refuses."""
        self.requests: list[str] = []
        self.searches = 0

    async def start(self) -> tuple[str, int]:
        loop = asyncio.get_running_loop()
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        self.udp, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=("127.0.0.1", 0))
        name: tuple[str, int] = self.udp.get_extra_info("sockname")
        return name

    def stop(self) -> None:
        self.server.close()
        self.udp.close()

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        self.searches += data.startswith(b"M-SEARCH * HTTP/1.1\r\n")
        location = self.location.format(port=self.port)
        self.udp.sendto(f"HTTP/1.1 200 OK\r\nST: x\r\nLocation: {location}\r\n\r\n".encode(), address)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length: ")[2].partition("\r\n")[0] or 0)
        body = (await reader.readexactly(length)).decode()
        self.requests.append(head.partition("\r\n")[0] + " " + body)
        answer = self.description if head.startswith("GET") else self._reply(body)
        status = "500 No" if self.refuses is not None and self.refuses in body else self.status
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(answer)}\r\n\r\n{answer}".encode())
        writer.close()

    def _reply(self, body: str) -> str:
        if "GetExternalIPAddress" in body:
            return f"<s:Body><NewExternalIPAddress>{self.external}</NewExternalIPAddress></s:Body>"
        return "<s:Body/>"


def play(story: Callable[[Router, tuple[str, int]], Awaitable[None]]) -> None:
    async def whole() -> None:
        router = Router()
        address = await router.start()
        try:
            async with asyncio.timeout(10):
                await story(router, address)
        finally:
            router.stop()

    asyncio.run(whole())


def test_a_router_is_found_and_maps_ports() -> None:
    async def story(router: Router, address: tuple[str, int]) -> None:
        gateway = await find_gateway("127.0.0.1", address)
        assert gateway is not None
        assert (gateway.service, gateway.control.path) == (SERVICE, "/control")
        assert await gateway.external_ip() == "203.0.113.7"
        assert await gateway.local_ip() == "127.0.0.1"
        await gateway.map("TCP", 30303, "127.0.0.1")
        await gateway.unmap("TCP", 30303)
        mapped, unmapped = router.requests[-2:]
        assert "AddPortMapping" in mapped
        assert "<NewInternalClient>127.0.0.1</NewInternalClient>" in mapped
        assert "<NewExternalPort>30303</NewExternalPort>" in mapped
        assert "DeletePortMapping" in unmapped

    play(story)


def test_no_router_answers() -> None:
    async def story(router: Router, address: tuple[str, int]) -> None:
        router.udp.close()
        assert await find_gateway("127.0.0.1", address, 0.2) is None
        assert await find_gateway("192.0.2.1", address, 0.2) is None, "no such address here"

    play(story)


@pytest.mark.parametrize(
    ("location", "description"),
    [
        ("http://127.0.0.2:{port}/description.xml", DESCRIPTION),
        ("https://127.0.0.1:{port}/description.xml", DESCRIPTION),
        ("http://127.0.0.1:1/description.xml", DESCRIPTION),
        ("nonsense", DESCRIPTION),
        ("http://[", DESCRIPTION),
        ("http://127.0.0.1:{port}/", "<root/>"),
        ("http://127.0.0.1:{port}/", DESCRIPTION.replace("/control", "http://127.0.0.9/control")),
        ("http://127.0.0.1:{port}/", "x" * 200_000),
    ],
)
def test_what_leads_nowhere_is_passed_over(location: str, description: str) -> None:
    async def story(router: Router, address: tuple[str, int]) -> None:
        router.location, router.description = location, description
        assert await find_gateway("127.0.0.1", address, 0.3) is None
        assert router.searches > 0

    play(story)


def test_a_refusal_is_an_error_of_one_line() -> None:
    async def story(router: Router, address: tuple[str, int]) -> None:
        gateway = await find_gateway("127.0.0.1", address)
        assert isinstance(gateway, Gateway)
        router.status = "500 Internal Server Error"
        with pytest.raises(GatewayError, match="refuses"):
            await gateway.map("UDP", 1, "127.0.0.1")
        router.stop()
        with pytest.raises(GatewayError, match="does not answer"):
            await gateway.external_ip()

    play(story)
