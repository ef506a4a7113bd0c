"""From a core and its options to the services that speak to clients."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import orjson
from msgspec import Struct
from msgspec.structs import replace

from ophion.chainspec.engines import EngineKind
from ophion.chainspec.genesis import Genesis
from ophion.consensus.engine import Finality
from ophion.native.crypto import PrivateKey
from ophion.node.build import Core
from ophion.node.config import NodeConfig
from ophion.node.security_options import AuthConfig, TlsConfig
from ophion.peers.eth.offer import offered_numbers
from ophion.primitives.enode import Enode
from ophion.rpc.endpoints.health import Health
from ophion.rpc.endpoints.services import HttpSettings, WebSocketSettings, http_service, websocket_service
from ophion.rpc.questions.context import Endpoint, NodeInfo, RpcContext, RpcLimits, SyncStatus
from ophion.rpc.questions.filters import Filters
from ophion.rpc.questions.private_filters import PrivateFilters
from ophion.rpc.questions.private_subscriptions import PrivateSubscriptions
from ophion.rpc.questions.receipt_waits import ReceiptWaits
from ophion.rpc.questions.rendered import RenderedBlocks
from ophion.rpc.questions.subscriptions import Subscriptions
from ophion.rpc.transport.budget import Budget
from ophion.rpc.transport.commons import Commons
from ophion.rpc.transport.http.policy import HttpLimits
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.streaming import Streams
from ophion.rpc.transport.tls.certificates import server_context
from ophion.rpc.transport.websocket.policy import WebSocketLimits
from ophion.rpc.transport.websocket.service import WebSocketService
from ophion.runtime.clock import Clock, Entropy
from ophion.runtime.lanes import Lanes
from ophion.runtime.memory import Trimming
from ophion.runtime.open_files import allow_open_files
from ophion.runtime.supervisor import Service
from ophion.version import client_version
from ophion.wallet.keyring import Keyring

if TYPE_CHECKING:
    import ssl

    from ophion.chain.pruning import PruningRounds
    from ophion.enclave.contract import Enclave
    from ophion.gateway.service import GatewayService
    from ophion.metrics.node_metrics import NodeMetrics
    from ophion.metrics.push import PushService
    from ophion.metrics.requests import RequestMetrics
    from ophion.node.peering import Network
    from ophion.peers.service import PeerService
    from ophion.privacy.service import Privacy
    from ophion.rpc.auth.door import Door

PortService: TypeAlias = "HttpService | WebSocketService | GatewayService"

PAGE_CLIENTS = 1024
"""Connections to the page of one node."""
_MESSAGE_FRAMES = 4
"""A WebSocket message may be as long as this many frames."""
_PORT_NAMES = {
    "jsonrpc": "json-rpc",
    "ws": "ws-rpc",
    "graphQL": "graphql-http",
    "metrics": "metrics",
    "page": "page-http",
    "enclave": "enclave-http",
    "enclavePeers": "enclave-peers",
}
_SHOWN_NAMES = {
    "jsonrpc": ("HTTP", "http", ""),
    "ws": ("WebSocket", "ws", ""),
    "graphQL": ("GraphQL", "http", "/graphql"),
    "metrics": ("Metrics", "http", "/metrics"),
    "page": ("Page", "http", "/"),
    "enclave": ("Enclave", "http", ""),
    "enclavePeers": ("Enclave peers", "http", ""),
}


class Interface(Struct, frozen=True):
    """The services of a node that clients talk to."""

    services: tuple[Service, ...]
    listening: dict[str, PortService]
    """Those with a port, by the name `net_services` uses."""
    peers: PeerService | None = None
    """Connections with other nodes, where the node has any."""

    @property
    def enode(self) -> Enode | None:
        """Where other nodes find this one."""
        return None if self.peers is None else self.peers.local_enode

    async def open(self) -> None:
        """Let clients in everywhere at once; JSON-RPC last, so that who reaches it reaches everything."""
        for service in reversed(self.listening.values()):
            await service.open()

    def ports(self) -> dict[str, int]:
        """Actual ports by the names of the ports file."""
        enode = self.enode
        ports = {}
        if enode is not None:
            ports = {"discovery": enode.udp_port} if enode.udp_port else {}
            ports["p2p"] = enode.tcp_port
        return ports | {_PORT_NAMES[name]: service.port for name, service in self.listening.items()}

    def urls(self) -> dict[str, str]:
        """Where a person finds the services."""
        shown = ((*_SHOWN_NAMES[name], service) for name, service in self.listening.items())
        urls = {
            title: f"{scheme}{'s' if one.is_encrypted else ''}://{one.host}:{one.port}{path}"
            for title, scheme, path, one in shown
        }
        return urls if self.enode is None else urls | {"Peers": self.enode.url}


def build_interface(
    config: NodeConfig,
    genesis: Genesis,
    core: Core,
    node_key: PrivateKey,
    lanes: Lanes,
    clock: Clock,
    entropy: Entropy,
    network: Network | None = None,
    data_path: Path = Path(),
    enclave: Enclave | None = None,
    privacy: Privacy | None = None,
    pruning: PruningRounds | None = None,
) -> Interface:
    """The services that the options ask for, on one set of methods."""
    peers = None if network is None else network.peers

    def sync_status() -> SyncStatus | None:
        found = None if network is None else network.sync.status()
        return None if found is None else SyncStatus(found.starting, found.current, found.highest)

    allow_open_files(
        (config.http.enabled + config.graphql.enabled) * config.http.max_connections
        + config.websocket.enabled * config.websocket.max_connections
        + config.page.enabled * 2 * PAGE_CLIENTS
    )
    queries, limits = core.queries, config.limits
    filters = Filters(clock, entropy, limits.max_filters)
    core.chain.events.listen(filters.on_chain_event)
    core.pool.events.listen(filters.on_pool_event)
    subscriptions = Subscriptions(
        core.chain.store,
        core.chain.events,
        core.pool.events,
        lanes,
        queries.with_total_difficulty,
        sync_status=lambda: _sync_text(sync_status()),
        most=limits.max_subscriptions,
        shows_revert_reason=config.access.revert_reason_enabled,
    )
    receipt_waits = ReceiptWaits()
    core.chain.events.listen(
        lambda event: receipt_waits.on_head(lambda hash: queries.transaction_position(hash) is not None)
    )
    private_filters, private_subscriptions = None, None
    if privacy is not None:
        private_filters = PrivateFilters(Filters(clock, entropy, limits.max_filters), privacy.ledger)
        privacy.follower.events.listen(private_filters.on_followed)
        private_subscriptions = PrivateSubscriptions(privacy.ledger, privacy.follower.events)
    network_id = genesis.spec.chain_id if config.network.network_id is None else config.network.network_id
    node = NodeInfo(
        client_version=client_version(config.peers.identity),
        node_id=node_key.public_key,
        network_id=network_id,
        genesis_hash=core.chain.genesis.hash,
        protocol_version=offered_numbers(core.chain.engine.finality is Finality.IMMEDIATE)[-1],
    )
    listening: dict[str, PortService] = {}

    @cache
    def metrics() -> NodeMetrics:
        """Made when somebody wants them: by an option, or by `debug_metrics`."""
        from ophion.metrics.node_metrics import NodeMetrics, Watched

        database = data_path / "database" / "data.mdb"
        watched = Watched(
            core.chain,
            queries,
            core.pool,
            filters,
            subscriptions,
            listening,
            lanes,
            clock,
            network,
            database,
            None if privacy is None else privacy.follower,
            pruning,
        )
        return NodeMetrics(watched, config.metrics.is_on)

    context = RpcContext(
        queries=queries,
        pool=core.pool,
        mining=core.mining,
        lanes=lanes,
        rendered=RenderedBlocks(core.chain.store, queries.with_total_difficulty),
        fees=core.fees,
        filters=filters,
        subscriptions=subscriptions,
        node=node,
        limits=RpcLimits(
            gas_cap=limits.gas_cap,
            max_logs_range=limits.max_logs_range,
            max_trace_range=limits.max_trace_range,
            max_logs=limits.max_logs,
            max_response_bytes=limits.max_response_bytes,
            timeout_s=limits.timeout_s,
            shows_revert_reason=config.access.revert_reason_enabled,
        ),
        streams=Streams(limits.max_traces, limits.max_response_bytes),
        receipt_waits=receipt_waits,
        accounts=_keyring(config),
        bad_blocks=core.importer.bad_blocks,
        permissions=core.permissions,
        clique=core.proposals if genesis.spec.engine is EngineKind.CLIQUE else None,
        ibft=core.bft if genesis.spec.engine is EngineKind.IBFT2 else None,
        qbft=core.bft if genesis.spec.qbft is not None else None,
        privacy=privacy,
        private_filters=private_filters,
        private_subscriptions=private_subscriptions,
        peers=peers,
        eth_peers=None if network is None else network.eth.peers,
        sync_status=sync_status,
        endpoints=lambda: _endpoints(listening, peers),
        metrics=lambda: metrics().tree(),
        data_path=str(data_path),
    )

    @cache
    def door() -> Door | None:
        """Where JSON-RPC asks for a token, GraphQL asks for the same: it would be a side door otherwise."""
        return _door(config.http_auth)

    commons = Commons(Budget(limits.max_held_bytes), lane=lanes.pack)
    requests = metrics().requests if config.metrics.is_on else None
    services: list[Service] = [subscriptions, Trimming()]
    if private_subscriptions is not None:
        services.append(private_subscriptions)
    if config.http.enabled:
        http = listening["jsonrpc"] = _http(config, context, commons, requests, door())
        services.append(http)
    if config.websocket.enabled:
        websocket = listening["ws"] = _websocket(config, context, commons, requests)
        services.append(websocket)
    if config.graphql.enabled:
        graphql = listening["graphQL"] = _graphql(config, context, commons, door())
        services.append(graphql)
    if config.metrics.is_on:
        services.append(_metrics(config, metrics(), commons, listening))
    if enclave is not None and config.enclave.http_port is not None:
        served = listening["enclave"] = _served(config, enclave, config.enclave.http_port, commons)
        services.append(served)
    if enclave is not None and config.enclave.peer_port is not None:
        reached = listening["enclavePeers"] = _reached(
            config, enclave, config.enclave.peer_port, clock, entropy, commons
        )
        services.append(reached)
    if enclave is not None and config.enclave.peer_urls:
        services.append(_distant(config, enclave, clock, entropy))
    if config.page.enabled:
        # the last one: it asks the others for their ports
        page = listening["page"] = _page(config, genesis, commons, listening, peers)
        services.append(page)
    for one in listening.values():
        one.waits_to_open = True
    return Interface(tuple(services), listening, peers)


def _sync_text(status: SyncStatus | None) -> bytes:
    """What subscribers of `syncing` get."""
    return b"false" if status is None else orjson.dumps(status.fields())


def _endpoints(listening: Mapping[str, PortService], peers: PeerService | None) -> dict[str, Endpoint]:
    """What listens now, in the order of the original: the port for peers comes before that of metrics."""
    found = {name: Endpoint(one.host, one.port) for name, one in listening.items() if name != "page"}
    enode = None if peers is None else peers.local_enode
    if enode is None:
        return found
    metrics = {name: found.pop(name) for name in ("metrics",) if name in found}
    return {**found, "p2p": Endpoint(enode.ip, enode.tcp_port), **metrics}


def _keyring(config: NodeConfig) -> Keyring | None:
    """The published keys of the development network, where the node is told to sign with them."""
    network = config.network
    return Keyring(account.private_key for account in network.accounts) if network.dev_unlocked else None


def _door(config: AuthConfig) -> Door | None:
    settings = config.settings()
    if settings is None:
        return None
    # what is behind it takes long to load: only nodes that ask for tokens wait for it
    from ophion.rpc.auth.door import Door

    return Door(settings)


def _tls(config: TlsConfig) -> ssl.SSLContext | None:
    settings = config.settings()
    return None if settings is None else server_context(settings)


def _http_limits(config: NodeConfig, max_body_bytes: int) -> HttpLimits:
    limits = config.limits
    return HttpLimits(
        max_connections=config.http.max_connections,
        max_body_bytes=max_body_bytes,
        max_head_bytes=limits.max_header_bytes,
        read_timeout_s=limits.read_timeout_s,
        write_timeout_s=limits.write_timeout_s,
        idle_timeout_s=limits.idle_timeout_s,
    )


def _http(
    config: NodeConfig, context: RpcContext, commons: Commons, measured: RequestMetrics | None, door: Door | None
) -> HttpService:
    http, access, limits = config.http, config.access, config.limits
    settings = HttpSettings(
        host=http.host,
        port=http.port,
        groups=tuple(group.value for group in http.groups),
        hosts=access.host_allow_list,
        origins=http.cors_origins,
        max_batch=http.max_batch_size,
        timeout_s=limits.timeout_s,
        errors_as_400=http.errors_as_400,
        max_response_bytes=limits.max_response_bytes,
        wording=access.error_wording,
        limits=_http_limits(config, max_body_bytes=http.max_content_length),
        door=door,
        tls=_tls(config.http_tls),
        commons=commons,
    )
    table = None if context.peers is None else context.peers.peers
    health = Health(context.sync_status, None if table is None else table.__len__)
    return http_service(context, settings, health, measured)


def _graphql(config: NodeConfig, context: RpcContext, commons: Commons, door: Door | None) -> HttpService:
    # loaded where it is used: a schema to be read and the files of a page
    from ophion.graphql.service import GraphqlSettings, graphql_service

    graphql, wanted, access, limits = config.graphql, config.graphql_limits, config.access, config.limits
    settings = GraphqlSettings(
        host=graphql.host,
        port=graphql.port,
        hosts=access.host_allow_list,
        origins=graphql.cors_origins,
        timeout_s=limits.timeout_s if wanted.timeout_s is None else wanted.timeout_s,
        limits=wanted,
        http=_http_limits(config, max_body_bytes=wanted.max_body_bytes),
        door=door,
        tls=_tls(config.graphql_tls),
        commons=commons,
    )
    return graphql_service(context, settings)


def _websocket(
    config: NodeConfig, context: RpcContext, commons: Commons, measured: RequestMetrics | None
) -> WebSocketService:
    websocket, access, limits = config.websocket, config.access, config.limits
    frame = websocket.max_frame_size or config.http.max_content_length
    settings = WebSocketSettings(
        host=websocket.host,
        port=websocket.port,
        groups=tuple(group.value for group in websocket.groups),
        hosts=access.host_allow_list,
        max_batch=config.http.max_batch_size,
        timeout_s=limits.timeout_s,
        limits=WebSocketLimits(
            max_connections=websocket.max_connections,
            max_frame_bytes=frame,
            max_message_bytes=max(frame, min(_MESSAGE_FRAMES * frame, config.http.max_content_length)),
            max_unread_bytes=limits.max_unread_bytes,
            write_timeout_s=limits.write_timeout_s,
        ),
        max_response_bytes=limits.max_response_bytes,
        wording=access.error_wording,
        door=_door(config.websocket_auth),
        tls=_tls(config.websocket_tls),
        origins=websocket.cors_origins or config.http.cors_origins,
        commons=commons,
    )
    return websocket_service(context, settings, measured)


def _page(
    config: NodeConfig,
    genesis: Genesis,
    commons: Commons,
    listening: Mapping[str, PortService],
    peers: PeerService | None,
) -> GatewayService:
    # loaded where it is used: other nodes do without
    from ophion.gateway.front import page_files
    from ophion.gateway.service import GatewayService
    from ophion.gateway.site import Kind, Place, Site, SiteNode

    kinds = {"jsonrpc": Kind.JSON_RPC, "ws": Kind.WEBSOCKET, "graphQL": Kind.GRAPHQL, "metrics": Kind.METRICS}
    spec = genesis.spec
    is_authority = spec.engine is not EngineKind.ETHASH

    def site() -> Site:
        """What listens now; the others have their ports when this service starts."""
        places = {kinds[name]: Place(_own(one.host), one.port) for name, one in listening.items() if name in kinds}
        enode = None if peers is None or peers.local_enode is None else peers.local_enode.url
        node = SiteNode("node", "validator" if is_authority else "rpc", places, enode)
        consensus = "dev" if spec.is_dev else spec.engine.value
        return Site(
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
        replace(_http_limits(config, config.http.max_content_length), max_connections=PAGE_CLIENTS),
        commons,
    )


def _own(host: str) -> str:
    """Where this machine reaches what listens on an address."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)


def _permitted(config: NodeConfig) -> str | None:
    """A name by which this node lets itself be addressed, where its own address is none."""
    names = config.access.host_allow_list
    return None if not {"*", "all", "127.0.0.1"}.isdisjoint(names) else names[0]


def _served(config: NodeConfig, enclave: Enclave, port: int, commons: Commons) -> HttpService:
    """The enclave inside, for tools and other nodes."""
    from ophion.enclave.inside import InnerEnclave
    from ophion.enclave_http.application import enclave_service

    assert isinstance(enclave, InnerEnclave), "the options do not serve one outside"
    return enclave_service(enclave, config.enclave.http_host, port, config.access.host_allow_list, commons)


def _metrics(
    config: NodeConfig, metrics: NodeMetrics, commons: Commons, listening: dict[str, PortService]
) -> HttpService | PushService:
    """What shows the metrics: a port that is asked, or a gateway that is told."""
    from ophion.metrics.push import PushService
    from ophion.metrics.server import metrics_service

    metrics.declare()
    if config.metrics.push_enabled:
        return PushService(metrics.registry, config.metrics)
    service = metrics_service(
        metrics.registry, config.metrics, config.access.host_allow_list, _tls(config.metrics_tls), commons
    )
    listening["metrics"] = service
    return service


def _reached(
    config: NodeConfig, enclave: Enclave, port: int, clock: Clock, entropy: Entropy, commons: Commons
) -> HttpService:
    """The enclave inside, for enclaves of nodes that are no peers."""
    from ophion.enclave.inside import InnerEnclave
    from ophion.enclave_http.peer_application import peer_service

    assert isinstance(enclave, InnerEnclave), "the options do not serve one outside"
    return peer_service(enclave, config.enclave.peer_host, port, clock, entropy, commons)


def _distant(config: NodeConfig, enclave: Enclave, clock: Clock, entropy: Entropy) -> Service:
    """What looks for those enclaves."""
    from ophion.enclave.inside import InnerEnclave
    from ophion.enclave_http.distant import DistantEnclaves

    assert isinstance(enclave, InnerEnclave), "the options do not serve one outside"
    return DistantEnclaves(config.enclave.peer_urls, enclave, clock, entropy)
