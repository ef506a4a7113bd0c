"""`NodeMetrics`: the metric registry of one node. `metric_declarations.py` declares names, labels and help texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from ophion.chain.chain import Chain
from ophion.chain.pruning import PruningRounds
from ophion.chain.queries import ChainQueries
from ophion.metrics.metric_declarations import (
    declare_block_history,
    declare_chain,
    declare_gossip,
    declare_interface,
    declare_lanes,
    declare_network,
    declare_peers,
    declare_permissions,
    declare_pool,
    declare_privacy,
    declare_pruning,
    declare_storage,
    declare_sync,
    declare_votes,
)
from ophion.metrics.process import declare_process
from ophion.metrics.requests import RequestMetrics
from ophion.permissions.permissions import Permissions
from ophion.pool.pool import TxPool
from ophion.rpc.services.filters import Filters
from ophion.rpc.services.subscriptions import Subscriptions
from ophion.rpc.transport.listener import Listener
from ophion.runtime.clock import Clock
from ophion.runtime.metrics_registry import MetricsRegistry, Nested
from ophion.runtime.thread_pools import Lanes

if TYPE_CHECKING:
    from ophion.peers.eth.protocol import EthProtocol
    from ophion.peers.service import PeerService
    from ophion.peers.sync.synchroniser import Synchroniser
    from ophion.privacy.private_executor import PrivateExecutor
    from ophion.producer.vote_caster import VoteCaster


class MeasuredNetwork(Protocol):
    """The parts of a node with peers that metrics measure."""

    @property
    def eth(self) -> EthProtocol: ...

    @property
    def sync(self) -> Synchroniser: ...

    @property
    def peers(self) -> PeerService: ...


class MeasuredParts(Struct, frozen=True):
    """Parts of a node that metrics measure."""

    chain: Chain
    queries: ChainQueries
    pool: TxPool
    filters: Filters
    subscriptions: Subscriptions
    listening: Mapping[str, Listener[Any]]
    """Services by name. Services may be added until `NodeMetrics.declare` is called."""
    lanes: Lanes
    clock: Clock
    network: MeasuredNetwork | None = None
    """Peer connections, eth and sync; None if the node has no peers."""
    database: Path | None = None
    """Path of the database file."""
    executor: PrivateExecutor | None = None
    """Executor of private transactions; None if private transactions are off."""
    pruning: PruningRounds | None = None
    """Pruning rounds; None if all states are kept."""
    permissions: Permissions | None = None
    """Permission rules in force, if any."""
    caster: VoteCaster | None = None
    """Writer of a shared vote store; None if the validator stores votes only in its own database."""


class NodeMetrics:
    """All metrics of one node, in one registry.

    Request metrics exist from the start, because method tables need them. The other metrics are declared when the
    services are known. With metrics off, the node declares nothing until a client calls `debug_metrics`.
    """

    def __init__(self, watched: MeasuredParts, is_on: bool) -> None:
        self.registry = MetricsRegistry()
        self.requests = RequestMetrics(self.registry) if is_on else None
        """Request counters and timers of the method tables; None when metrics are off."""
        self._watched = watched
        self._is_declared = False

    def declare(self) -> None:
        """Declare all families except request metrics. A second call does nothing."""
        if self._is_declared:
            return
        self._is_declared = True
        watched, registry = self._watched, self.registry
        network = watched.network
        declare_chain(registry, watched.chain, watched.queries)
        if watched.database is not None:
            declare_storage(registry, watched.database)
        declare_network(
            registry,
            watched.queries,
            0 if network is None else network.peers.max_peers,
            lambda: 0 if network is None else len(network.peers.peers),
            lambda: watched.queries.head_number if network is None else network.sync.best_height,
            lambda: network is None or network.sync.is_in_sync(),
        )
        if watched.caster is not None:
            declare_votes(registry, watched.caster)
        if watched.pruning is not None:
            declare_pruning(registry, watched.pruning)
        if watched.executor is not None:
            declare_privacy(registry, watched.executor)
        if network is not None:
            declare_peers(registry, network.peers)
            declare_gossip(registry, network.eth)
            declare_sync(registry, network.sync.figures)
            declare_block_history(registry, watched.chain)
        if watched.permissions is not None:
            declare_permissions(registry, watched.permissions)
        declare_pool(registry, watched.pool, watched.chain)
        declare_interface(registry, watched.listening, watched.filters, watched.subscriptions)
        declare_lanes(registry, watched.lanes)
        declare_process(registry, watched.clock)

    def tree(self) -> Nested:
        """Return the result of `debug_metrics`."""
        self.declare()
        return self.registry.nested()
