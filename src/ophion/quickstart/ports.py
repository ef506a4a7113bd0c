"""Ports of all services: the ports of the last run, else the ports of operations.md 15.3, else free ports.

`ports.json` stores the ports, so that a resumed network has the same addresses.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, astuple

from ophion.errors import CommandError
from ophion.gateway.backends import ServiceAddress, ServiceKind
from ophion.quickstart.plan import NetworkPlan, PlannedNode, PlannedRole
from ophion.runtime.operator_files import content_of

HOST: Final = "127.0.0.1"
_PROXY_PORT: Final = 8080
_TOOL_PORTS: Final = {"prometheus": 9090, "grafana": 3000}
_SPARE: Final = range(10_000, 20_000)
"""Range of free ports. The range is below the ephemeral ports, which other programs could get before a node listens."""
_positions: Final = itertools.count(os.getpid() * 101)


class NodePorts(Struct, frozen=True):
    """The ports of one node."""

    p2p: int
    http: int
    websocket: int
    graphql: int
    metrics: int

    @property
    def places(self) -> dict[ServiceKind, ServiceAddress]:
        """Return the address of each of the node's services, by kind of service."""
        return {
            ServiceKind.JSON_RPC: ServiceAddress(HOST, self.http),
            ServiceKind.WEBSOCKET: ServiceAddress(HOST, self.websocket),
            ServiceKind.GRAPHQL: ServiceAddress(HOST, self.graphql),
            ServiceKind.METRICS: ServiceAddress(HOST, self.metrics),
        }


class NetworkPorts(Struct, frozen=True):
    """The ports of a network."""

    nodes: Mapping[str, NodePorts]
    proxy: int
    tools: Mapping[str, int]

    @property
    def address(self) -> str:
        """Address of the network, without a scheme."""
        return f"{HOST}:{self.proxy}"

    def tool_port(self, name: str) -> int:
        """Return the port of a monitoring tool (Prometheus or Grafana), even if the tool is not installed."""
        return self.tools.get(name, _TOOL_PORTS[name])

    def text(self) -> str:
        """Return the content of `ports.json`."""
        nodes = {name: asdict(ports) for name, ports in self.nodes.items()}
        return json.dumps({"proxy": self.proxy, "nodes": nodes, "tools": self.tools}, indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> NetworkPorts | None:
        """Read the ports of the last run, or None before the first run. Raises `CommandError` for an invalid file."""
        try:
            found: dict[str, Any] = json.loads(content_of(path))
            nodes = {name: NodePorts(**ports) for name, ports in found["nodes"].items()}
            layout = cls(nodes, found["proxy"], found["tools"])
            ports = [layout.proxy, *layout.tools.values(), *(port for node in nodes.values() for port in astuple(node))]
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CommandError(f"Unable to read {path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CommandError(f"{path} is not a valid list of ports: {error}") from None
        if not all(type(port) is int and 0 < port < 1 << 16 for port in ports):
            raise CommandError(f"{path} is not a valid list of ports: an entry is not a port")
        return layout


class PortClaims:
    """Claims ports from the moment they are chosen until the network ends. A context manager.

    A node may start to listen seconds after its port was chosen, and a killed node frees its port. A claim keeps other
    quickstarts off the port while no node listens on it. A claim is an abstract Unix socket name, which the kernel
    releases when the process ends. Systems other than Linux have no such names, so another quickstart may choose the
    same port there.
    """

    def __init__(self) -> None:
        self._held: list[socket.socket] = []

    def take(self, port: int) -> bool:
        """Claim a port. Returns False if the port is in use, or claimed by this or another network."""
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

    def __enter__(self) -> PortClaims:
        return self

    def __exit__(self, *raised: object) -> None:
        for one in self._held:
            one.close()


def lay_out(
    plan: NetworkPlan, tools: tuple[str, ...], take: Callable[[int], bool], last: NetworkPorts | None = None
) -> NetworkPorts:
    """Choose free ports, if possible the ports of the `last` run.

    Raises `CommandError` if a requested port is in use. `take` claims a port and returns whether it succeeded.
    """
    used: set[int] = set()
    # claim the requested port before the ports of nodes, because nodes accept any free port
    if plan.port and not take(plan.port):
        raise CommandError(f"Port {plan.port} is in use: choose another --port, omit it, or use 0 for a free one.")
    used.update((plan.port,) if plan.port else ())
    preferred = {node.name: _table(node) for node in plan.nodes}
    proxy, preferred_tools = (_PROXY_PORT if plan.port is None else 0), _TOOL_PORTS
    if last is not None:
        preferred |= {name: astuple(ports) for name, ports in last.nodes.items() if name in preferred}
        proxy, preferred_tools = last.proxy, preferred_tools | dict(last.tools)
    nodes = {name: NodePorts(*(_port(port, used, take) for port in ports)) for name, ports in preferred.items()}
    proxy = plan.port or _port(proxy, used, take)
    return NetworkPorts(nodes, proxy, {tool: _port(preferred_tools[tool], used, take) for tool in tools})


def _table(node: PlannedNode) -> tuple[int, int, int, int, int]:
    number = node.number
    if node.role is PlannedRole.RPC:
        return 30303, 8545, 8546, 8547, 9545
    if node.role is PlannedRole.MEMBER:
        http = 20000 + 2 * (number - 1)
        return 30320 + number, http, http + 1, 23100 + number, 9560 + number
    return 30310 + number, 21000 + number, 22000 + number, 23000 + number, 9550 + number


def _port(port: int, used: set[int], take: Callable[[int], bool]) -> int:
    if not port or port in used or not take(port):
        port = spare_port(lambda spare: spare not in used and take(spare))
    used.add(port)
    return port


def spare_port(take: Callable[[int], bool]) -> int:
    """Choose and claim a free port. Recently used ports are not chosen again."""
    for position in itertools.islice(_positions, len(_SPARE)):
        if take(port := _SPARE[position % len(_SPARE)]):
            return port
    raise CommandError(f"No port is free between {_SPARE[0]} and {_SPARE[-1]}.")


def _is_free(port: int) -> bool:
    """Whether a service could listen on the port now."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((HOST, port))
            one.listen(1)
        except OSError:
            return False
    return True
