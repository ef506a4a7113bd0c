"""Enode URLs: the public key and the endpoints of a node.

`enode://<128 hex>@<ip>:<tcp port>[?discport=<udp port>]` (networking.md 6.5). A host name in place of the address is
accepted where the caller resolves it (`--dns-enabled`).
"""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache
from typing import Final

from msgspec import Struct

from ophion.errors import DecodeError

NODE_ID_LENGTH: Final = 64
_HEX_DIGITS: Final = frozenset("0123456789abcdefABCDEF")
_HOST_NAME: Final = re.compile(
    r"(?=.{1,253}$)(?=.*[A-Za-z])[A-Za-z0-9_]([A-Za-z0-9_-]{0,62})(\.[A-Za-z0-9_][A-Za-z0-9_-]{0,62})*\.?"
)
_FORM: Final = "enode://<node_id>@<ip>:<listening_port>[?discport=<discovery_port>]"


class EnodeError(DecodeError):
    """Raised for text that is not an enode URL."""

    def __init__(self, cause: str) -> None:
        self.cause = cause
        super().__init__(f"Invalid enode URL syntax. Enode URL should have the following format '{_FORM}'. {cause}")


class NodeIdError(EnodeError):
    """Raised if the part before the @ is not a node id. JSON-RPC has a separate error message for this case."""

    def __init__(self) -> None:
        super().__init__(
            "Invalid node ID: node ID must have exactly 128 hexadecimal characters and should not include any '0x' hex "
            "prefix."
        )


class Enode(Struct, frozen=True):
    """One node's identity and endpoints."""

    node_id: bytes
    """The 64-byte public key."""
    ip: str
    """Canonical IP address: IPv6 compressed, IPv4-mapped addresses as IPv4."""
    tcp_port: int
    """TCP port. 0 when the node does not listen."""
    udp_port: int
    """UDP port. 0 when discovery is off."""
    host: str = ""
    """Host name of the URL, in lower case. `ip` is empty until the name is resolved."""

    @classmethod
    def parse(cls, url: str, *, host_names: bool = False) -> Enode:
        """Parse a URL. With `host_names`, the URL may have a host name instead of an IP address. Raises
        `EnodeError`.
        """
        scheme, separator, rest = url.partition("://")
        if not separator or scheme.lower() != "enode":
            raise EnodeError("The scheme must be enode://.")
        node_id_text, separator, endpoint = rest.partition("@")
        if not node_id_text or (not separator and len(node_id_text) != 2 * NODE_ID_LENGTH):
            raise EnodeError("The node ID is missing.")
        if len(node_id_text) != 2 * NODE_ID_LENGTH or not _HEX_DIGITS.issuperset(node_id_text):
            raise NodeIdError
        if not separator:
            raise EnodeError("The address is missing.")
        address, query_mark, query = endpoint.partition("?")
        host, colon, port_text = address.rpartition(":")
        if not colon:
            raise EnodeError("The listening port is missing.")
        tcp_port = _port(port_text, "listening")
        udp_port = _discovery_port(query) if query_mark else tcp_port
        node_id = bytes.fromhex(node_id_text)
        if host_names and is_host_name(host):
            return cls(node_id, "", tcp_port, udp_port, host.lower())
        return cls(node_id, canonical_ip(host), tcp_port, udp_port)

    @property
    def url(self) -> str:
        """The URL in its canonical spelling, with the host name if there is one."""
        host = self.host or (f"[{self.ip}]" if ":" in self.ip else self.ip)
        query = "" if self.udp_port == self.tcp_port else f"?discport={self.udp_port}"
        return f"enode://{self.node_id.hex()}@{host}:{self.tcp_port}{query}"

    def at(self, ip: str) -> Enode:
        """Return the same node with `ip` as the address of its host name. An empty `ip` means that the name is not
        resolved.
        """
        return Enode(self.node_id, ip, self.tcp_port, self.udp_port, self.host)

    def __str__(self) -> str:
        return self.url


def is_host_name(host: str) -> bool:
    """Whether a text can be a host name. IP addresses do not count."""
    return _HOST_NAME.fullmatch(host) is not None


def canonical_ip(host: str) -> str:
    """Return the canonical form of an IP literal. IPv6 must be in brackets."""
    bracketed = host.startswith("[") and host.endswith("]")
    try:
        address = ipaddress.ip_address(host[1:-1] if bracketed else host)
    except ValueError:
        raise EnodeError(f"Invalid ip address {host!r}; host names are not accepted without --dns-enabled.") from None
    if isinstance(address, ipaddress.IPv4Address):
        if bracketed:
            raise EnodeError(f"Invalid ip address {host!r}.")
        return str(address)
    if not bracketed or address.scope_id is not None:
        raise EnodeError(f"Invalid ip address {host!r}; IPv6 stands in brackets and has no zone.")
    return _plain(address)


@lru_cache(maxsize=1024)
def socket_ip(text: str) -> str:
    """Return the canonical form of an address from a socket, without zone. IPv4-mapped addresses become IPv4."""
    return _plain(ipaddress.ip_address(text.partition("%")[0]))


def _plain(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(address if mapped is None else mapped)


def _discovery_port(query: str) -> int:
    key, equals, value = query.partition("=")
    if key != "discport" or not equals:
        raise EnodeError(f"Invalid query {query!r}; only discport is known.")
    return _port(value, "discovery")


def _port(text: str, kind: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 5 or int(text) > 65535:
        raise EnodeError(f"Invalid {kind} port {text[:20]!r}.")
    return int(text)
