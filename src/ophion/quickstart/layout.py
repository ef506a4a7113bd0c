"""Where everything listens: the ports of operations.md 15.3, or free ones where they are taken."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from ophion.errors import CommandError
from ophion.gateway.site import Kind, Place
from ophion.quickstart.plan import Plan, PlannedNode, Role

HOST: Final = "127.0.0.1"
_PROXY_PORT: Final = 8080
_TOOL_PORTS: Final = {"prometheus": 9090, "grafana": 3000}


class NodePorts(Struct, frozen=True):
    """The ports of one node."""

    p2p: int
    http: int
    websocket: int
    graphql: int
    metrics: int

    @property
    def places(self) -> dict[Kind, Place]:
        """As a gateway knows them."""
        return {
            Kind.JSON_RPC: Place(HOST, self.http),
            Kind.WEBSOCKET: Place(HOST, self.websocket),
            Kind.GRAPHQL: Place(HOST, self.graphql),
            Kind.METRICS: Place(HOST, self.metrics),
        }


class Layout(Struct, frozen=True):
    """The ports of a network."""

    nodes: Mapping[str, NodePorts]
    proxy: int
    tools: Mapping[str, int]

    @property
    def address(self) -> str:
        """The one address of the network, without a scheme."""
        return f"{HOST}:{self.proxy}"

    def tool_port(self, name: str) -> int:
        """Where a tool listens, or would listen if it were installed."""
        return self.tools.get(name, _TOOL_PORTS[name])


class Claims:
    """The ports of a network from the moment they were chosen to its end; a context manager.

    What was found free may not be used for seconds, and a node that was killed leaves its port to whoever comes first:
    a claim keeps other quickstarts away meanwhile. It is a name that the system gives to one socket at a time, in the
    same space that ports are counted in, and takes back when the process ends, however that ends. Other systems than
    Linux have none; there the moment between choosing and listening stays.
    """

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def take(self, port: int) -> bool:
        """Whether it is ours from now on: nobody has claimed it, this network included, and nobody listens there."""
        if sys.platform != "linux":
            return _is_free(port)
        one = socket.socket(socket.AF_UNIX)
        try:
            one.bind(f"\0ophion-quickstart-{port}")
        except OSError:
            one.close()
            return False
        if not _is_free(port):
            one.close()
            return False
        self._held.append(one)
        return True

    def __enter__(self) -> Claims:
        return self

    def __exit__(self, *raised: object) -> None:
        for one in self._held:
            one.close()


def lay_out(plan: Plan, tools: tuple[str, ...], take: Callable[[int], bool]) -> Layout:
    """Ports that nobody else has at this moment; `CommandError` when the one that was asked for is taken.

    `take` claims a port, and is false when that cannot be.
    """
    taken: set[int] = set()
    # the one that was asked for comes first: a node can do with another
    if plan.port and not take(plan.port):
        raise CommandError(f"Port {plan.port} is taken: choose another --port, leave it out, or give 0 for a free one.")
    taken.update((plan.port,) if plan.port else ())
    nodes = {node.name: NodePorts(*(_port(port, taken, take) for port in _table(node))) for node in plan.nodes}
    proxy = plan.port or _port(_PROXY_PORT if plan.port is None else 0, taken, take)
    return Layout(nodes, proxy, {tool: _port(_TOOL_PORTS[tool], taken, take) for tool in tools})


def _table(node: PlannedNode) -> tuple[int, int, int, int, int]:
    number = node.number
    if node.role is Role.RPC:
        return 30303, 8545, 8546, 8547, 9545
    if node.role is Role.MEMBER:
        http = 20000 + 2 * (number - 1)
        return 30320 + number, http, http + 1, 23100 + number, 9560 + number
    return 30310 + number, 21000 + number, 22000 + number, 23000 + number, 9550 + number


def _port(wanted: int, taken: set[int], take: Callable[[int], bool]) -> int:
    port = wanted
    while not port or port in taken or not take(port):
        with socket.socket() as one:
            one.bind((HOST, 0))
            port = one.getsockname()[1]
    taken.add(port)
    return port


def _is_free(port: int) -> bool:
    """Whether a service could listen there now."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((HOST, port))
            one.listen(1)
        except OSError:
            return False
    return True
