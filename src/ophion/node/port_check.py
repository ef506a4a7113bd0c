"""Ports that others have: named for all services at once, before a node makes or opens anything.

A second node on the same machine meets the first on every port that nobody has chosen for it: `ophion dev` has three.
It does not look for other ports by itself, because a client that knows the usual one would talk to the wrong node and
not notice. (The page does, where nobody has chosen its port: people follow the address that they are shown.)
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

from msgspec import Struct

from ophion.errors import OphionError
from ophion.node.config import NodeConfig
from ophion.runtime.port_in_use import is_taken, taken

_ANYWHERE = ("", "0.0.0.0", "::")


class PortsTaken(OphionError):
    """Services cannot listen where they should."""


class _Wanted(Struct, frozen=True):
    service: str
    flag: str
    host: str
    port: int

    def meets(self, other: _Wanted) -> bool:
        """Whether both want the same."""
        is_same_host = self.host == other.host or self.host in _ANYWHERE or other.host in _ANYWHERE
        return self.port == other.port and is_same_host


def check_ports(config: NodeConfig) -> None:
    """`PortsTaken` has a line for each port that somebody else has, or that two services of this node want."""
    wanted = [one for one in _wanted(config) if one.port]
    found = []
    for number, one in enumerate(wanted):
        place = f"{one.service} cannot listen on {one.host}:{one.port}"
        double = next((other for other in wanted[:number] if one.meets(other)), None)
        if double is not None:
            found.append(
                f"{place}: the {double.service} of this node does. Choose another port with {double.flag} or"
                f" {one.flag}, or 0 for any that is free."
            )
        elif _is_taken(one.host, one.port):
            found.append(f"{place}: {taken(one.flag)}")
    if found:
        raise PortsTaken("\n".join(found))


def _wanted(config: NodeConfig) -> Iterator[_Wanted]:
    """What listens where somebody said; in the order in which services are started."""
    peers, enclave = config.peers, config.enclave
    if peers.enabled:
        yield _Wanted("P2P service", "--p2p-port", peers.interface, peers.port)
    if config.http.enabled:
        yield _Wanted("JsonRPC service", "--rpc-http-port", config.http.host, config.http.port)
    if config.websocket.enabled:
        yield _Wanted("Websocket service", "--rpc-ws-port", config.websocket.host, config.websocket.port)
    if config.graphql.enabled:
        yield _Wanted("GraphQL service", "--graphql-http-port", config.graphql.host, config.graphql.port)
    if config.metrics.enabled:
        yield _Wanted("Metrics service", "--metrics-port", config.metrics.host, config.metrics.port)
    if config.privacy.enabled and enclave.http_port is not None:
        yield _Wanted("Enclave service", "--privacy-enclave-http-port", enclave.http_host, enclave.http_port)
    if config.privacy.enabled and enclave.peer_port is not None:
        yield _Wanted("Enclave peers", "--privacy-enclave-port", enclave.peer_host, enclave.peer_port)
    if config.page.enabled and config.page.port is not None:
        yield _Wanted("Page service", "--page-http-port", config.page.host, config.page.port)


def _is_taken(host: str, port: int) -> bool:
    """Whether somebody listens there; whatever else is wrong with the place is said when the service starts."""
    try:
        # as bytes, which need no look into the rules of international names
        places = socket.getaddrinfo(host.encode() or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in places:
            with socket.socket(family, kind, protocol) as one:
                # as the services do: what is left of connections of the last run does not count
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                one.bind(address)
    except OSError as error:
        return is_taken(error)
    return False
