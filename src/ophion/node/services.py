"""Builds the services for clients from a core and its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
from msgspec import Struct

from ophion.chainspec.consensus_parameters import EngineKind
from ophion.chainspec.genesis import Genesis
from ophion.consensus.engine import Finality
from ophion.native.crypto import PrivateKey
from ophion.node.build import NodeCore
from ophion.node.config import NodeConfig
from ophion.node.import_warmup import ImportWarmup
from ophion.node.interface_options import ApiGroup
from ophion.node.listeners import (
    PAGE_CLIENTS,
    PortService,
    auth_setup_for,
    distant_enclaves,
    enclaves_port,
    graphql_port,
    ipc_service,
    json_rpc_port,
    metrics_port,
    metrics_push,
    otlp_export,
    otlp_settings,
    share_port,
    tessera_enclaves,
    tools_port,
    websocket_port,
)
from ophion.peers.eth.supported_versions import offered_numbers
from ophion.primitives.enode import Enode
from ophion.rpc.services.block_json_cache import BlockJsonCache
from ophion.rpc.services.context import Endpoint, NodeInfo, RpcContext, RpcLimits, SyncStatus
from ophion.rpc.services.filters import Filters
from ophion.rpc.services.receipt_waits import ReceiptWaits
from ophion.rpc.services.subscriptions import Subscriptions
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.rpc.transport.streaming import StreamLimit
from ophion.runtime.clock import Clock, Entropy
from ophion.runtime.fair_scheduler import FairScheduler
from ophion.runtime.memory import MemoryTrimmer
from ophion.runtime.memory_budget import MemoryBudget
from ophion.runtime.open_files import allow_open_files
from ophion.runtime.options import hosts_of
from ophion.runtime.supervisor import Service
from ophion.runtime.thread_pools import Lanes
from ophion.version import client_version

if TYPE_CHECKING:
    from ophion.chain.pruning import PruningRounds
    from ophion.enclave.interface import Enclave
    from ophion.metrics.node_metrics import NodeMetrics
    from ophion.metrics.requests import RequestMetrics
    from ophion.node.peering import PeerNetwork
    from ophion.peers.service import PeerService
    from ophion.privacy.service import Privacy
    from ophion.rpc.auth.auth_setup import AuthSetup
    from ophion.rpc.services.private_filters import PrivateFilters
    from ophion.rpc.services.private_subscriptions import PrivateSubscriptions
    from ophion.rpc.services.sql_queries import SqlQueries
    from ophion.wallet.keyring import Keyring

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
    "page": ("Web", "http", "/"),
    "enclave": ("Enclave", "http", ""),
    "enclavePeers": ("Enclave peers", "http", ""),
}


class PublicInterface(Struct, frozen=True):
    """The public interface: all services for clients."""

    services: tuple[Service, ...]
    listening: dict[str, PortService]
    """Services with a port, by their names in `net_services`."""
    context: RpcContext
    """The context that RPC methods receive: chain, pool and the services that the methods use."""
    peers: PeerService | None = None
    """The peer service, or None if the node has no peers."""

    @property
    def enode(self) -> Enode | None:
        """Return the enode URL of this node."""
        return None if self.peers is None else self.peers.local_enode

    async def open(self) -> None:
        """Open all ports. The JSON-RPC port opens last, so that a client of this port can reach all services."""
        for service in reversed(self.listening.values()):
            await service.open()

    def ports(self) -> dict[str, int]:
        """Return the ports that are actually open, by their names in the ports file."""
        enode = self.enode
        ports = {}
        if enode is not None:
            ports = {"discovery": enode.udp_port} if enode.udp_port else {}
            ports["p2p"] = enode.tcp_port
        return ports | {_PORT_NAMES[name]: service.port for name, service in self.listening.items()}

    def urls(self) -> dict[str, str]:
        """Return the URLs of the services for the banner."""
        shown = ((*_SHOWN_NAMES[name], service) for name, service in self.listening.items())
        urls = {
            title: f"{scheme}{'s' if one.is_encrypted else ''}://{hosts_of(one.host)[0]}:{one.port}{path}"
            for title, scheme, path, one in shown
        }
        return urls if self.enode is None else urls | {"Peers": self.enode.url}


def build_interface(
    config: NodeConfig,
    genesis: Genesis,
    core: NodeCore,
    node_key: PrivateKey,
    lanes: Lanes,
    clock: Clock,
    entropy: Entropy,
    network: PeerNetwork | None = None,
    data_path: Path = Path(),
    enclave: Enclave | None = None,
    privacy: Privacy | None = None,
    pruning: PruningRounds | None = None,
) -> PublicInterface:
    """Build the services that the options enable. All services use the same set of RPC methods."""
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
    private_filters, private_subscriptions = _private_services(privacy, lanes, clock, entropy, limits.max_filters)
    listening: dict[str, PortService] = {}

    otlp = otlp_settings()
    is_measured = config.metrics.is_on or otlp is not None

    @cache
    def metrics() -> NodeMetrics:
        """Return the metrics, which are created at first use: by an option or by a `debug_metrics` call."""
        from ophion.metrics.node_metrics import MeasuredParts, NodeMetrics

        database = data_path / "database" / "data.mdb"
        watched = MeasuredParts(
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
            None if privacy is None else privacy.executor,
            pruning,
            core.permissions,
            None if core.bft is None else core.bft.caster,
        )
        return NodeMetrics(watched, is_measured)

    offered = {group for one in (config.http, config.websocket) if one.enabled for group in one.groups}
    sql: SqlQueries | None = None
    if ApiGroup.SQL in offered:
        # lazy import: few nodes offer SQL
        from ophion.node.sql import sql_queries

        sql = sql_queries(config, data_path)
    context = RpcContext(
        queries=queries,
        pool=core.pool,
        mining=core.mining,
        lanes=lanes,
        rendered=BlockJsonCache(core.chain.store, queries.with_total_difficulty),
        fees=core.fees,
        filters=filters,
        subscriptions=subscriptions,
        node=_node_info(config, genesis, core, node_key),
        limits=rpc_limits(config),
        streams=StreamLimit(limits.max_traces, limits.max_response_bytes),
        receipt_waits=receipt_waits,
        accounts=_keyring(config),
        dev=core.dev,
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
        sql=sql,
    )

    services: list[Service] = [subscriptions, MemoryTrimmer(), ImportWarmup(listening, offered)]
    if sql is not None:
        services.append(sql)
    if private_subscriptions is not None:
        services.append(private_subscriptions)
    requests = metrics().requests if is_measured else None
    services += _listeners(config, genesis, context, enclave, clock, entropy, metrics, requests, listening)
    if otlp is not None:
        services.append(otlp_export(config, otlp, metrics(), core.chain, clock, entropy, node_key.address))
    return PublicInterface(tuple(services), listening, context, peers)


def _listeners(
    config: NodeConfig,
    genesis: Genesis,
    context: RpcContext,
    enclave: Enclave | None,
    clock: Clock,
    entropy: Entropy,
    metrics: Callable[[], NodeMetrics],
    requests: RequestMetrics | None,
    listening: dict[str, PortService],
) -> list[Service]:
    """Build the services for clients. Services with a port are added to `listening`."""

    @cache
    def http_auth() -> AuthSetup | None:
        """Return the authentication that JSON-RPC and GraphQL share. A token is valid for both interfaces."""
        return auth_setup_for(config.http_auth)

    lanes = context.lanes
    scheduler = FairScheduler(priority=lanes.block_priority)
    shared = SharedResources(MemoryBudget(config.limits.max_held_bytes), scheduler, lanes.pack)
    without_port: list[Service] = []
    if config.http.enabled:
        listening["jsonrpc"] = json_rpc_port(config, context, shared, requests, http_auth())
        if config.http.workers:
            # lazy import: few nodes have workers
            from ophion.node.rpc_workers.wiring import rpc_workers

            http = listening["jsonrpc"]
            assert isinstance(http, HttpService)
            without_port.append(rpc_workers(config, genesis, context, http, shared, requests, clock))
    if config.websocket.enabled:
        listening["ws"] = websocket_port(config, context, shared, requests)
        if config.has_cheat_codes and config.http.enabled:
            # development tools use the same port for HTTP and WebSocket
            share_port(listening["jsonrpc"], listening["ws"])
        if config.dev.ipc_path is not None:
            without_port.append(ipc_service(config, context, listening["ws"]))
    if config.graphql.enabled:
        listening["graphQL"] = graphql_port(config, context, shared, http_auth())
    if config.metrics.enabled:
        listening["metrics"] = metrics_port(config, metrics(), shared)
    if config.metrics.push_enabled:
        without_port.append(metrics_push(config, metrics()))
    if enclave is not None and config.enclave.http_port is not None:
        listening["enclave"] = tools_port(config, enclave, config.enclave.http_port, shared)
    if enclave is not None and config.enclave.peer_port is not None:
        tessera = tessera_enclaves(config, enclave, entropy) if config.enclave.tessera_peers else None
        port = config.enclave.peer_port
        listening["enclavePeers"] = enclaves_port(config, enclave, port, clock, entropy, shared, tessera)
        if tessera is not None:
            without_port.append(tessera)
    if enclave is not None and config.enclave.peer_urls:
        without_port.append(distant_enclaves(config, enclave, clock, entropy))
    if config.page.enabled:
        # lazy import: few nodes need this module
        from ophion.node.web_interface import page_port

        # build the web interface last, because it reads the ports of the other services
        listening["page"] = page_port(config, genesis, shared, listening, context.peers)
    for one in listening.values():
        one.waits_to_open = True
    return [*listening.values(), *without_port]


def _node_info(config: NodeConfig, genesis: Genesis, core: NodeCore, node_key: PrivateKey) -> NodeInfo:
    network_id = config.network.network_id
    return NodeInfo(
        client_version=config.dev.client_version or client_version(config.peers.identity),
        node_id=node_key.public_key,
        network_id=genesis.spec.chain_id if network_id is None else network_id,
        genesis_hash=core.chain.genesis.hash,
        protocol_version=offered_numbers(core.chain.engine.finality is Finality.IMMEDIATE)[-1],
        compat=None if config.process.compat is None else config.process.compat.value,
    )


def rpc_limits(config: NodeConfig) -> RpcLimits:
    """Return the limits of a single request."""
    limits = config.limits
    return RpcLimits(
        gas_cap=limits.gas_cap,
        max_logs_range=limits.max_logs_range,
        max_trace_range=limits.max_trace_range,
        max_logs=limits.max_logs,
        max_response_bytes=limits.max_response_bytes,
        timeout_s=limits.timeout_s,
        shows_revert_reason=config.access.revert_reason_enabled,
    )


def _private_services(
    privacy: Privacy | None, lanes: Lanes, clock: Clock, entropy: Entropy, max_filters: int
) -> tuple[PrivateFilters | None, PrivateSubscriptions | None]:
    """Build filters and subscriptions for private logs. Returns (None, None) if private transactions are off."""
    if privacy is None:
        return None, None
    # lazy import: few nodes need this module
    from ophion.rpc.services.private_filters import PrivateFilters
    from ophion.rpc.services.private_subscriptions import PrivateSubscriptions

    filters = PrivateFilters(Filters(clock, entropy, max_filters), privacy.ledger)
    privacy.executor.events.listen(filters.on_followed)
    return filters, PrivateSubscriptions(privacy.ledger, privacy.executor.events, lanes.private, privacy.tenants)


def _sync_text(status: SyncStatus | None) -> bytes:
    """Return the notification text for `syncing` subscriptions."""
    return b"false" if status is None else orjson.dumps(status.fields())


def _endpoints(listening: Mapping[str, PortService], peers: PeerService | None) -> dict[str, Endpoint]:
    """Return the open ports in the order of Pantheon 1.2: the peer port is before the metrics port."""
    found = {name: Endpoint(hosts_of(one.host)[0], one.port) for name, one in listening.items() if name != "page"}
    enode = None if peers is None else peers.local_enode
    if enode is None:
        return found
    metrics = {name: found.pop(name) for name in ("metrics",) if name in found}
    return {**found, "p2p": Endpoint(enode.ip, enode.tcp_port), **metrics}


def _keyring(config: NodeConfig) -> Keyring | None:
    """Return the public test keys of the development network if --dev-unlocked-accounts is set, otherwise None."""
    network = config.network
    if not network.dev_unlocked:
        return None
    from ophion.wallet.keyring import Keyring

    return Keyring(account.private_key for account in config.accounts)
