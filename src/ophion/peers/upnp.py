"""UPnP client for port mappings on a router (networking.md 2.8).

    SSDP search (multicast)  ->  URL of the device description  ->  control URL of the WAN connection service
                                 GetExternalIPAddress, AddPortMapping, DeletePortMapping

Responses are bounded in size and time, and accepted only from the address that answered the search.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from typing import Final
from urllib.parse import SplitResult, urljoin, urlsplit

from msgspec import Struct

from ophion.errors import OphionError

SEARCH_ADDRESS: Final = ("239.255.255.250", 1900)
SEARCH_S: Final = 3.0
_REQUEST_TIMEOUT_S: Final = 3.0
_MAX_RESPONSE_BYTES: Final = 64 * 1024
_ATTEMPTS: Final = 2
_GATEWAYS: Final = tuple(f"urn:schemas-upnp-org:device:InternetGatewayDevice:{version}" for version in (1, 2))
_SERVICE: Final = re.compile(
    rb"<serviceType>\s*(urn:schemas-upnp-org:service:WAN(?:IP|PPP)Connection:[12])\s*</serviceType>"
    rb"(?:(?!</service>).){0,2000}?<controlURL>\s*([^<\s]{1,500})\s*</controlURL>",
    re.DOTALL,
)
_LOCATION: Final = re.compile(rb"^location:[ \t]*(\S{1,500})[ \t]*\r?$", re.IGNORECASE | re.MULTILINE)
_EXTERNAL: Final = re.compile(rb"<NewExternalIPAddress>\s*([0-9a-fA-F.:]{2,45})\s*</NewExternalIPAddress>")
_STATUS: Final = re.compile(rb"HTTP/1\.[01] (\d{3})")
_ENVELOPE: Final = (
    '<?xml version="1.0"?>'
    '<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"'
    ' s:encodingStyle="http://schemas.xmlsoap.org/soap/encoding/">'
    '<s:Body><u:{action} xmlns:u="{service}">{arguments}</u:{action}></s:Body></s:Envelope>'
)


class GatewayError(OphionError):
    """Raised when the router refuses a request or does not answer."""


class Gateway(Struct, frozen=True):
    """A router that maps ports."""

    control: SplitResult
    service: str

    async def external_ip(self) -> str:
        """Return the external address. Raises `GatewayError` if the router has no external address, for example while
        offline.
        """
        found = _EXTERNAL.search(await self._ask("GetExternalIPAddress", {}))
        try:
            address = ipaddress.ip_address("" if found is None else found.group(1).decode())
        except ValueError:
            address = None
        if address is None or address.is_unspecified or address.is_loopback or address.is_multicast:
            raise GatewayError("the router has no external address")
        return str(address)

    async def map(self, protocol: str, port: int, local: str) -> None:
        """Forward a port of the router to the same port number of this machine."""
        arguments = {
            "NewRemoteHost": "",
            "NewExternalPort": str(port),
            "NewProtocol": protocol,
            "NewInternalPort": str(port),
            "NewInternalClient": local,
            "NewEnabled": "1",
            "NewPortMappingDescription": "ophion",
            "NewLeaseDuration": "0",
        }
        await self._ask("AddPortMapping", arguments)

    async def unmap(self, protocol: str, port: int) -> None:
        """Remove a port mapping from the router."""
        await self._ask(
            "DeletePortMapping", {"NewRemoteHost": "", "NewExternalPort": str(port), "NewProtocol": protocol}
        )

    async def local_ip(self) -> str:
        """Return the address of this machine in the router's network."""
        _, writer = await _open(self.control)
        try:
            return str(writer.get_extra_info("sockname")[0])
        finally:
            writer.close()

    async def _ask(self, action: str, arguments: dict[str, str]) -> bytes:
        fields = "".join(f"<{name}>{value}</{name}>" for name, value in arguments.items())
        body = _ENVELOPE.format(action=action, service=self.service, arguments=fields).encode()
        headers = f'SOAPAction: "{self.service}#{action}"\r\nContent-Type: text/xml; charset="utf-8"\r\n'
        return await _request(self.control, "POST", headers, body)


async def find_gateway(
    interface: str = "0.0.0.0", search_address: tuple[str, int] = SEARCH_ADDRESS, search_s: float = SEARCH_S
) -> Gateway | None:
    """Return the first router with a port mapping service, or None if no router answers before the timeout."""
    loop = asyncio.get_running_loop()
    responses: asyncio.Queue[tuple[bytes, str]] = asyncio.Queue(16)
    try:
        transport, _ = await loop.create_datagram_endpoint(lambda: _Search(responses), sock=_search_socket(interface))
    except OSError:
        return None
    try:
        async with asyncio.timeout(search_s):
            for _ in range(_ATTEMPTS):
                for kind in _GATEWAYS:
                    transport.sendto(_search_request(kind, search_address), search_address)
            while True:
                gateway = await _read_description(*await responses.get())
                if gateway is not None:
                    return gateway
    except (TimeoutError, OSError):
        return None
    finally:
        transport.close()


class _Search(asyncio.DatagramProtocol):
    """Collects the first few responses to the search."""

    def __init__(self, responses: asyncio.Queue[tuple[bytes, str]]) -> None:
        self._responses = responses

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        if len(data) <= _MAX_RESPONSE_BYTES and not self._responses.full():
            self._responses.put_nowait((data, str(address[0])))

    def error_received(self, error: Exception) -> None:
        """Ignore ICMP errors. The search has a timeout."""


def _search_socket(interface: str) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        made.setblocking(False)
        made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 2)
        if ipaddress.ip_address(interface).version == 4 and not ipaddress.ip_address(interface).is_unspecified:
            made.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(interface))
            made.bind((interface, 0))
        else:
            made.bind(("0.0.0.0", 0))
    except BaseException:
        made.close()
        raise
    return made


def _search_request(kind: str, address: tuple[str, int]) -> bytes:
    lines = ("M-SEARCH * HTTP/1.1", f"HOST: {address[0]}:{address[1]}", 'MAN: "ssdp:discover"', "MX: 2", f"ST: {kind}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


async def _read_description(answer: bytes, sender: str) -> Gateway | None:
    """Fetch the device description to which a router's answer refers. Returns None if either is unusable."""
    location = _LOCATION.search(answer)
    if location is None:
        return None
    try:
        url = urlsplit(location.group(1).decode("ascii"))
        # accept only URLs at the router's own address, because the router could make this node send requests to other
        # hosts
        if url.scheme != "http" or url.hostname != sender:
            return None
        description = await _request(url, "GET", "", b"")
        found = _SERVICE.search(description)
        if found is None:
            return None
        control = urlsplit(urljoin(url.geturl(), found.group(2).decode("ascii")))
    except (ValueError, GatewayError):
        return None
    return Gateway(control, found.group(1).decode("ascii")) if control.hostname == sender else None


async def _request(url: SplitResult, method: str, headers: str, body: bytes) -> bytes:
    """Send one HTTP request. Returns the whole response, at most `_MAX_RESPONSE_BYTES`. Raises `GatewayError` if the
    router does not answer or the status is not 200.
    """
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    head = f"{method} {path} HTTP/1.1\r\nHost: {url.netloc}\r\nConnection: close\r\n{headers}"
    try:
        async with asyncio.timeout(_REQUEST_TIMEOUT_S):
            reader, writer = await _open(url)
            try:
                writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                answer = b""
                while len(answer) <= _MAX_RESPONSE_BYTES and (piece := await reader.read(_MAX_RESPONSE_BYTES)):
                    answer += piece
            finally:
                writer.close()
    except (OSError, TimeoutError) as error:
        raise GatewayError(f"the router at {url.netloc} does not answer: {str(error) or 'timeout'}") from None
    status = _STATUS.match(answer)
    if status is None or status.group(1) != b"200":
        raise GatewayError(f"the router at {url.netloc} refuses: {answer[:60]!r}")
    return answer[:_MAX_RESPONSE_BYTES]


async def _open(url: SplitResult) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(url.hostname, url.port or 80)
