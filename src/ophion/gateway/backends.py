"""The nodes of a network and the addresses of their services (`site.json`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from ophion.errors import CommandError
from ophion.runtime.operator_files import content_of


class ServiceKind(Enum):
    """A service of a node. The value is the path prefix of the service on the gateway."""

    JSON_RPC = "jsonrpc"
    WEBSOCKET = "jsonws"
    GRAPHQL = "graphql"
    METRICS = "metrics"


class ServiceAddress(Struct, frozen=True):
    """Host and port of a service."""

    host: str
    port: int


class BackendNode(Struct, frozen=True):
    """One node of a network, with its role and addresses."""

    name: str
    role: str
    """Role of the node: `rpc`, `validator` or `member`."""
    places: Mapping[ServiceKind, ServiceAddress]
    """Addresses of the enabled services."""
    enode: str | None = None


class BackendNetwork(Struct, frozen=True):
    """A network. Requests to paths without a node name go to the first node."""

    network: str
    consensus: str | None
    nodes: tuple[BackendNode, ...]
    tools: Mapping[str, ServiceAddress] = field(default_factory=dict)
    """Addresses of `prometheus` and `grafana`, if these tools run beside the network."""
    needs_token: bool = False
    """Whether JSON-RPC over HTTP requires a token."""
    socket_needs_token: bool = False
    """Whether JSON-RPC over WebSocket requires a token."""
    host_name: str | None = None
    """Host name that the nodes' host allowlists accept, if they do not accept the listening address."""

    def write(self, path: Path) -> None:
        """Write the addresses to a file. `read` reads the file."""
        nodes = [
            {
                "name": node.name,
                "role": node.role,
                "enode": node.enode,
                "places": {kind.value: [place.host, place.port] for kind, place in node.places.items()},
            }
            for node in self.nodes
        ]
        tools = {name: [place.host, place.port] for name, place in self.tools.items()}
        network = {"network": self.network, "consensus": self.consensus}
        tokens = {"token": self.needs_token, "socketToken": self.socket_needs_token}
        document = {**network, **tokens, "nodes": nodes, "tools": tools}
        path.write_text(json.dumps(document, indent=2) + "\n")

    @classmethod
    def read(cls, path: Path) -> BackendNetwork:
        """Read the addresses of a network from a file that `write` has written.

        Raises `CommandError` if the file is missing or malformed.
        """
        try:
            document = json.loads(content_of(path))
            nodes = tuple(_node(item) for item in document["nodes"])
            tools = {str(name): _place(place) for name, place in document.get("tools", {}).items()}
            if not nodes:
                raise ValueError("no nodes")
            token, socket_token = (document.get(name) is True for name in ("token", "socketToken"))
            return cls(str(document["network"]), document["consensus"], nodes, tools, token, socket_token)
        except OSError as error:
            raise CommandError(f"Unable to read {path}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise CommandError(f"{path} does not describe a network: {error}") from None


def _node(item: Any) -> BackendNode:
    places = {ServiceKind(kind): _place(place) for kind, place in item["places"].items()}
    return BackendNode(str(item["name"]), str(item["role"]), places, item.get("enode"))


def _place(item: Any) -> ServiceAddress:
    host, port = item
    return ServiceAddress(str(host), int(port))
