"""Checks the ports of all services before a node creates or opens anything.

A second node on one machine collides with the first node on every default port. The second node does not choose other
ports by itself, because a client that knows the default port would reach the wrong node. Only the web interface moves
to a free port, because users follow the printed address.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from ophion.errors import OphionError
from ophion.node.config import NodeConfig
from ophion.runtime.options import hosts_of
from ophion.runtime.port_in_use import is_taken, taken

_ANYWHERE = ("", "0.0.0.0", "::")


class PortsTaken(OphionError):
    """Raised when a port is used by another process, or by two services of this node."""


class _RequestedPort(Struct, frozen=True):
    service: str
    flag: str
    host: str
    port: int

    def conflicts_with(self, other: _RequestedPort) -> bool:
        """Whether two services would listen on the same address and port."""
        is_same_host = self.host == other.host or self.host in _ANYWHERE or other.host in _ANYWHERE
        return self.port == other.port and is_same_host


def check_ports(config: NodeConfig) -> None:
    """Raise `PortsTaken` with a line for each port that is in use or configured twice."""
    requested = [replace(one, host=host) for one in _requested_ports(config) if one.port for host in hosts_of(one.host)]
    found = []
    for number, one in enumerate(requested):
        place = f"{one.service} cannot listen on {one.host}:{one.port}"
        double = next((other for other in requested[:number] if one.conflicts_with(other)), None)
        if double is not None:
            found.append(
                f"{place}: the {double.service} of this node does. Choose another port with {double.flag} or"
                f" {one.flag}, or 0 for any that is free."
            )
        elif _is_taken(one.host, one.port):
            found.append(f"{place}: {taken(one.flag)}")
    if found:
        raise PortsTaken("\n".join(found))


def _requested_ports(config: NodeConfig) -> Iterator[_RequestedPort]:
    """Yield the ports of enabled services, in the order in which the services start."""
    peers, enclave = config.peers, config.enclave
    if peers.enabled:
        yield _RequestedPort("P2P service", "--p2p-port", peers.interface, peers.port)
    if config.http.enabled:
        yield _RequestedPort("JsonRPC service", "--rpc-http-port", config.http.host, config.http.port)
    if config.websocket.enabled:
        yield _RequestedPort("Websocket service", "--rpc-ws-port", config.websocket.host, config.websocket.port)
    if config.graphql.enabled:
        yield _RequestedPort("GraphQL service", "--graphql-http-port", config.graphql.host, config.graphql.port)
    if config.metrics.enabled:
        yield _RequestedPort("Metrics service", "--metrics-port", config.metrics.host, config.metrics.port)
    if config.privacy.enabled and enclave.http_port is not None:
        yield _RequestedPort("Enclave service", "--privacy-enclave-http-port", enclave.http_host, enclave.http_port)
    if config.privacy.enabled and enclave.peer_port is not None:
        yield _RequestedPort("Enclave peers", "--privacy-enclave-port", enclave.peer_host, enclave.peer_port)
    if config.page.enabled and config.page.port is not None:
        yield _RequestedPort("Page service", "--page-http-port", config.page.host, config.page.port)


def _is_taken(host: str, port: int) -> bool:
    """Whether the port is in use. Other problems are ignored here, because the service reports such problems when it
    starts.
    """
    try:
        # pass the host as bytes, so that Python does not import the idna codec
        places = socket.getaddrinfo(host.encode() or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in places:
            with socket.socket(family, kind, protocol) as one:
                # reuse addresses like the services, so that closed connections of the last run do not count as in use
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                one.bind(address)
    except OSError as error:
        return is_taken(error)
    return False
