"""The web interface: a gateway in front of the other services of the same node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ophion.chainspec.consensus_parameters import EngineKind
from ophion.chainspec.genesis import Genesis
from ophion.gateway.landing_page import page_files
from ophion.gateway.service import GatewayService
from ophion.node.config import NodeConfig
from ophion.node.listeners import PAGE_CLIENTS, PortService, http_limits
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.options import hosts_of

if TYPE_CHECKING:
    from ophion.gateway.backends import BackendNetwork
    from ophion.peers.service import PeerService


def page_port(
    config: NodeConfig,
    genesis: Genesis,
    shared: SharedResources,
    listening: Mapping[str, PortService],
    peers: PeerService | None,
) -> GatewayService:
    """Build the web interface, which forwards requests to the other services of this node."""
    spec = genesis.spec
    is_authority = spec.engine is not EngineKind.ETHASH

    def site() -> BackendNetwork:
        """Return the open services. The first request calls this function, when the ports are known."""
        from ophion.gateway.backends import BackendNetwork, BackendNode, ServiceAddress, ServiceKind

        kinds = {
            "jsonrpc": ServiceKind.JSON_RPC,
            "ws": ServiceKind.WEBSOCKET,
            "graphQL": ServiceKind.GRAPHQL,
            "metrics": ServiceKind.METRICS,
        }
        places = {
            kinds[name]: ServiceAddress(_own(hosts_of(one.host)[0]), one.port)
            for name, one in listening.items()
            if name in kinds
        }
        enode = None if peers is None or peers.local_enode is None else peers.local_enode.url
        node = BackendNode("node", "validator" if is_authority else "rpc", places, enode)
        consensus = "dev" if spec.is_dev else spec.engine.value
        return BackendNetwork(
            config.network.name or "private",
            consensus,
            (node,),
            needs_token=config.http_auth.enabled,
            socket_needs_token=config.websocket_auth.enabled,
            host_name=_permitted(config),
        )

    return GatewayService(
        site,
        page_files(),
        config.page.host,
        config.page.port,
        config.access.host_allow_list,
        replace(http_limits(config, config.http.max_content_length), max_connections=PAGE_CLIENTS),
        shared,
    )


def _own(host: str) -> str:
    """Return an address at which this machine reaches a listener."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def _permitted(config: NodeConfig) -> str | None:
    """Return an allowed host name of this node, or None when all names or no names are allowed."""
    names = config.access.host_allow_list
    return names[0] if names and {"*", "all"}.isdisjoint(names) else None
