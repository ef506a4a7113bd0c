"""Where everything listens: the ports of operations.md 15.3, or free ones where they are taken."""

from __future__ import annotations

import socket
from collections.abc import Mapping
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


def lay_out(plan: Plan, tools: tuple[str, ...]) -> Layout:
    """Ports that nobody else has at this moment; `CommandError` when the one that was asked for is taken."""
    taken: set[int] = set()
    nodes = {node.name: NodePorts(*(_port(port, taken) for port in _table(node))) for node in plan.nodes}
    if plan.port:
        if not _is_free(plan.port) or plan.port in taken:
            raise CommandError(
                f"Port {plan.port} is taken: choose another --port, leave it out, or give 0 for a free one."
            )
        taken.add(plan.port)
        proxy = plan.port
    else:
        proxy = _port(_PROXY_PORT if plan.port is None else 0, taken)
    return Layout(nodes, proxy, {tool: _port(_TOOL_PORTS[tool], taken) for tool in tools})


def _table(node: PlannedNode) -> tuple[int, int, int, int, int]:
    number = node.number
    if node.role is Role.RPC:
        return 30303, 8545, 8546, 8547, 9545
    if node.role is Role.MEMBER:
        http = 20000 + 2 * (number - 1)
        return 30320 + number, http, http + 1, 23100 + number, 9560 + number
    return 30310 + number, 21000 + number, 22000 + number, 23000 + number, 9550 + number


def _port(wanted: int, taken: set[int]) -> int:
    port = wanted if wanted and wanted not in taken and _is_free(wanted) else 0
    while not port or port in taken:
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
