"""Where everything listens: the ports of the last run, those of operations.md 15.3, or free ones where they are taken.

`ports.json` keeps them: who has been told the address of a network finds it there again when it is resumed.
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
from ophion.gateway.backends import Kind, Place
from ophion.quickstart.plan import NetworkPlan, PlannedNode, Role
from ophion.runtime.operator_files import content_of

HOST: Final = "127.0.0.1"
_PROXY_PORT: Final = 8080
_TOOL_PORTS: Final = {"prometheus": 9090, "grafana": 3000}
_SPARE: Final = range(10_000, 20_000)
"""Where ports come from that nobody has a wish for: below those that the system gives to connections that go out. One
of those may be gone before a node listens there, and again when it was killed and is to come back."""
_turns: Final = itertools.count(os.getpid() * 101)


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

    def text(self) -> str:
        """As `ports.json`."""
        nodes = {name: asdict(ports) for name, ports in self.nodes.items()}
        return json.dumps({"proxy": self.proxy, "nodes": nodes, "tools": self.tools}, indent=2) + "\n"

    @classmethod
    def read(cls, path: Path) -> Layout | None:
        """That of the last run, None before the first; `CommandError` when the file is not one of ours."""
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
            raise CommandError(f"{path} does not say where a network listens: {error}") from None
        if not all(type(port) is int and 0 < port < 1 << 16 for port in ports):
            raise CommandError(f"{path} does not say where a network listens: not all of it are ports")
        return layout


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


def lay_out(
    plan: NetworkPlan, tools: tuple[str, ...], take: Callable[[int], bool], last: Layout | None = None
) -> Layout:
    """Ports that nobody else has at this moment, if possible those of the `last` run.

    `CommandError` when the one that was asked for is taken. `take` claims a port, and is false when that cannot be.
    """
    taken: set[int] = set()
    # the one that was asked for comes first: a node can do with another
    if plan.port and not take(plan.port):
        raise CommandError(f"Port {plan.port} is taken: choose another --port, leave it out, or give 0 for a free one.")
    taken.update((plan.port,) if plan.port else ())
    usual = {node.name: _table(node) for node in plan.nodes}
    proxy, usual_tools = (_PROXY_PORT if plan.port is None else 0), _TOOL_PORTS
    if last is not None:
        usual |= {name: astuple(ports) for name, ports in last.nodes.items() if name in usual}
        proxy, usual_tools = last.proxy, usual_tools | dict(last.tools)
    nodes = {name: NodePorts(*(_port(port, taken, take) for port in ports)) for name, ports in usual.items()}
    proxy = plan.port or _port(proxy, taken, take)
    return Layout(nodes, proxy, {tool: _port(usual_tools[tool], taken, take) for tool in tools})


def _table(node: PlannedNode) -> tuple[int, int, int, int, int]:
    number = node.number
    if node.role is Role.RPC:
        return 30303, 8545, 8546, 8547, 9545
    if node.role is Role.MEMBER:
        http = 20000 + 2 * (number - 1)
        return 30320 + number, http, http + 1, 23100 + number, 9560 + number
    return 30310 + number, 21000 + number, 22000 + number, 23000 + number, 9550 + number


def _port(wanted: int, taken: set[int], take: Callable[[int], bool]) -> int:
    if not wanted or wanted in taken or not take(wanted):
        wanted = spare_port(lambda port: port not in taken and take(port))
    taken.add(wanted)
    return wanted


def spare_port(take: Callable[[int], bool]) -> int:
    """A port that nobody has a wish for, claimed by `take`; not soon the same one again."""
    for turn in itertools.islice(_turns, len(_SPARE)):
        if take(port := _SPARE[turn % len(_SPARE)]):
            return port
    raise CommandError(f"No port is free between {_SPARE[0]} and {_SPARE[-1]}.")


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
