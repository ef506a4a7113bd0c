"""Declarations of a node's metrics (operations.md 9 has the full inventory).

Most values are read only when Prometheus scrapes them, and cost nothing otherwise. Listeners that count events
(transactions, blocks) run only on nodes with metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ophion.chain.chain import Chain
from ophion.chain.events import ChainEvent, Reorged
from ophion.chain.pruning import PruningRounds
from ophion.chain.queries import ChainQueries
from ophion.permissions.decision_counts import DecisionCounts
from ophion.permissions.permissions import Permissions
from ophion.pool.events import Added, Origin, PoolEvent
from ophion.pool.pool import TxPool
from ophion.primitives.types import Hash32
from ophion.rpc.services.filters import Filters
from ophion.rpc.services.subscriptions import Subscriptions
from ophion.rpc.transport.listener import Listener
from ophion.runtime.metric_category import Category
from ophion.runtime.metrics_registry import MetricsRegistry
from ophion.runtime.thread_pools import Lane, Lanes

if TYPE_CHECKING:
    from ophion.peers.eth.protocol import EthProtocol
    from ophion.peers.service import PeerService
    from ophion.peers.sync.sync_metrics import SyncMetrics
    from ophion.privacy.private_executor import PrivateExecutor
    from ophion.producer.vote_caster import VoteCaster

_LANES = ("write", "build", "read", "trace", "peers", "private", "prune", "mine")


def declare_chain(registry: MetricsRegistry, chain: Chain, queries: ChainQueries) -> None:
    """Declare metrics of the chain head and of imports."""
    category = Category.BLOCKCHAIN

    def gauge(name: str, help: str, source: Callable[[], float]) -> None:
        registry.gauge(category, name, help).watch(source)

    gauge("height", "Number of the head.", lambda: queries.head_number)
    gauge(
        "difficulty_total",
        "Total difficulty of the head.",
        lambda: queries.total_difficulty(queries.head_hash) or 0,
    )
    gauge("chain_head_timestamp", "Timestamp of the head, in seconds.", lambda: queries.head.header.timestamp)
    gauge("chain_head_gas_used", "Gas used by the head.", lambda: queries.head.header.gas_used)
    gauge("chain_head_gas_limit", "Gas limit of the head.", lambda: queries.head.header.gas_limit)
    gauge("chain_head_transaction_count", "Transactions in the head.", lambda: queries.latest.body.transaction_count)
    gauge("chain_head_ommer_count", "Ommers in the head.", lambda: len(queries.latest.body.ommers))
    gauge(
        "state_cache_bytes",
        "Memory for parts of the newest state (--state-cache-size).",
        chain.store.state_cached,
    )
    blocks = registry.counter(category, "blocks_added_total", "Blocks added to the canonical chain.")
    transactions = registry.counter(category, "transactions_total", "Transactions in added blocks.")
    gas = registry.counter(category, "gas_used_total", "Gas used by added blocks.")
    reorganisations = registry.counter(category, "reorganizations_total", "Chain reorganisations.")
    for counter in (blocks, transactions, gas, reorganisations):
        counter.add(0)

    def on_chain_event(event: ChainEvent) -> None:
        if isinstance(event, Reorged):
            reorganisations.add()
        added = event.added if isinstance(event, Reorged) else event.blocks
        blocks.add(len(added))
        transactions.add(sum(block.body.transaction_count for block in added))
        gas.add(sum(block.header.header.gas_used for block in added))

    chain.events.listen(on_chain_event)


def declare_storage(registry: MetricsRegistry, database: Path) -> None:
    """Declare a metric of the disk space that the database uses. The file is sparse, so its nominal size is larger."""
    registry.gauge(Category.BLOCKCHAIN, "database_bytes", "Disk space used by the database.").watch(
        lambda: database.stat().st_blocks * 512 if database.exists() else 0
    )


def declare_votes(registry: MetricsRegistry, caster: VoteCaster) -> None:
    """Declare metrics of the shared vote store."""
    category = Category.BLOCKCHAIN
    registry.timer(category, "vote_store_seconds", "Time to store one vote before it is sent.").watch(caster.durations)
    registry.counter(
        category, "vote_store_refused_total", "Votes not sent because another node with the same key voted otherwise."
    ).watch(lambda: caster.refused)
    registry.gauge(category, "vote_store_available", "0 while the shared vote store is unavailable.").watch(
        lambda: int(caster.problem is None)
    )


def declare_pruning(registry: MetricsRegistry, rounds: PruningRounds) -> None:
    """Declare metrics of state pruning. The first four metrics have Besu's names."""
    category, dropped = Category.PRUNER, rounds.dropped

    def counter(name: str, help: str, source: Callable[[], float]) -> None:
        registry.counter(category, name, help).watch(source)

    counter("mark_operations_total", "Pruning rounds started.", lambda: dropped.rounds)
    counter("marked_nodes_total", "Trie nodes marked as needed.", lambda: dropped.marked)
    counter("sweep_operations_total", "Pruning rounds that deleted trie nodes.", lambda: dropped.sweeps)
    counter("swept_nodes_total", "Trie nodes deleted by pruning.", lambda: dropped.freed)
    counter("states_dropped_total", "Block states deleted by pruning.", lambda: dropped.states)
    counter("failures_total", "Pruning rounds that failed.", lambda: dropped.failures)
    registry.gauge(category, "running", "1 while a pruning round runs.").watch(lambda: int(dropped.is_running))
    registry.gauge(category, "history_blocks", "Blocks before the head whose states are kept.").watch(
        lambda: rounds.keep
    )


def declare_privacy(registry: MetricsRegistry, executor: PrivateExecutor) -> None:
    """Declare metrics of private transactions."""
    category = Category.BLOCKCHAIN
    registry.gauge(category, "private_height", "Last block with private execution complete.").watch(
        lambda: executor.number
    )
    registry.gauge(category, "private_enclave_away", "1 while the enclave is offline.").watch(
        lambda: int(executor.is_waiting_for_enclave)
    )
    counts = executor.counts
    markers = registry.counter(category, "private_markers_total", "Markers seen, of any group.")
    markers.watch(lambda: counts.markers)
    executed = registry.counter(category, "private_transactions_total", "Private transactions executed.")
    executed.watch(lambda: counts.executed)
    late = registry.counter(category, "private_late_total", "Private transactions with a late payload.")
    late.watch(lambda: counts.late)


def declare_network(
    registry: MetricsRegistry,
    queries: ChainQueries,
    max_peers: int,
    peer_count: Callable[[], int],
    best_known: Callable[[], int],
    is_in_sync: Callable[[], bool],
) -> None:
    """Declare metrics of the head, the best known block, the number of peers and whether the node is in sync."""
    ethereum = Category.ETHEREUM
    registry.gauge(ethereum, "blockchain_height", "Number of the head.").watch(lambda: queries.head_number)
    registry.gauge(ethereum, "best_known_block_number", "Number of the best known block.").watch(
        lambda: max(best_known(), queries.head_number)
    )
    registry.gauge(ethereum, "peer_count", "Connected peers.").watch(peer_count)
    registry.gauge(ethereum, "peer_limit", "Maximum number of peers.").watch(lambda: max_peers)
    registry.gauge(Category.SYNCHRONIZER, "in_sync", "1 while the node is in sync.").watch(lambda: int(is_in_sync()))


def declare_peers(registry: MetricsRegistry, service: PeerService) -> None:
    """Declare metrics of peer connections and their traffic."""
    traffic, peers, network = service.traffic, Category.PEERS, Category.NETWORK

    def counter(category: Category, name: str, help: str, labels: Sequence[str], counts: Mapping[Any, int]) -> None:
        """Declare a counter whose label values appear when traffic occurs."""
        registry.counter(category, name, help, *labels).watch_table(
            lambda: {tuple(map(str, key)) if isinstance(key, tuple) else (key,): n for key, n in counts.items()}
        )

    def gauge(name: str, help: str, source: Callable[[], float]) -> None:
        registry.gauge(peers, name, help).watch(source)

    counter(peers, "connected_total", "Peers connected since the start.", ["direction"], traffic.connected)
    ended = ["initiator", "disconnectReason"]
    counter(peers, "disconnected_total", "Peer connections that ended.", ended, traffic.disconnected)
    gauge("handshakes_current", "Inbound connections without a completed handshake.", lambda: len(service.pending))
    gauge("dialling_current", "Nodes being dialled.", lambda: service.dialling)
    gauge("static_current", "Static peers.", lambda: len(service.plan.static_nodes))
    gauge("barred_current", "Temporarily banned nodes.", lambda: len(service.bans))
    gauge("outgoing_bytes_current", "Bytes queued for peers.", lambda: service.waiting_bytes)
    registry.counter(peers, "refused_total", "Inbound connections refused.").watch(lambda: service.pending.refused)
    named = ["protocol", "name", "code"]
    counter(network, "p2p_messages_inbound_total", "Messages from peers.", named, traffic.received)
    counter(network, "p2p_messages_outbound_total", "Messages to peers.", named, traffic.sent)
    counter(network, "p2p_bytes_inbound_total", "Bytes of messages from peers.", ["protocol"], traffic.payload_received)
    counter(network, "p2p_bytes_outbound_total", "Bytes of messages to peers.", ["protocol"], traffic.payload_sent)
    counter(network, "p2p_dropped_total", "Gossip dropped at a full send queue.", ["protocol"], traffic.dropped)
    sockets = registry.counter(network, "p2p_socket_bytes_total", "Bytes on the sockets of peers.", "direction")
    sockets.watch(lambda: traffic.bytes_received, "inbound")
    sockets.watch(lambda: traffic.bytes_sent, "outbound")
    discovery = service.discovery
    if discovery is not None:
        received, sent = discovery.received_count, discovery.sent_count
        counter(network, "discovery_messages_inbound_total", "Discovery packets received.", ["name"], received)
        counter(network, "discovery_messages_outbound_total", "Discovery packets sent.", ["name"], sent)
        asked, repeated = discovery.asked_count, discovery.repeated_count
        counter(network, "discovery_interaction_count_total", "Discovery requests sent.", ["type"], asked)
        counter(network, "discovery_interaction_retry_count_total", "Discovery requests retried.", ["type"], repeated)
        open_now = registry.gauge(network, "discovery_inflight_interactions_current", "Open discovery requests.")
        open_now.watch(lambda: discovery.open_questions)
        known = registry.gauge(network, "discovery_nodes_current", "Nodes in the discovery table.")
        known.watch(lambda: len(discovery.buckets))


def declare_gossip(registry: MetricsRegistry, eth: EthProtocol) -> None:
    """Declare metrics of gossip and requests of the eth protocol."""
    peers = Category.PEERS
    registry.gauge(peers, "eth_current", "Peers with a valid eth Status.").watch(lambda: len(eth.peers))
    pending = registry.gauge(peers, "pending_peer_requests_current", "Requests that wait for a free peer.")
    pending.watch(lambda: sum(peer.requests.waiting for peer in eth.peers))
    blocks = registry.counter(peers, "gossip_blocks_total", "Blocks sent to peers in full.")
    blocks.watch(lambda: eth.blocks.sent)
    transactions = registry.counter(peers, "gossip_transactions_total", "Transactions sent to peers.", "form")
    transactions.watch(lambda: eth.transactions.sent, "full")
    transactions.watch(lambda: eth.transactions.announced_out, "hash")
    skipped = registry.counter(
        Category.TRANSACTION_POOL, "transactions_messages_skipped_total", "Transaction messages dropped."
    )
    skipped.watch(lambda: eth.transactions.skipped)
    waiting = registry.gauge(peers, "announced_transactions_current", "Announced transactions not received yet.")
    waiting.watch(lambda: eth.transactions.awaited)


def declare_sync(registry: MetricsRegistry, figures: SyncMetrics) -> None:
    """Declare metrics of synchronisation."""
    category = Category.SYNCHRONIZER
    tasks = registry.timer(category, "task", "Duration of the steps of synchronisation.", "taskName")
    for name, durations in figures.tasks.items():
        tasks.watch(durations, name)
    processed = registry.counter(
        category, "chain_download_pipeline_processed_total", "Items processed by the download.", "step", "action"
    )
    processed.watch_table(lambda: figures.processed)
    restarts = registry.counter(category, "chain_download_pipeline_restarts_total", "Downloads that failed.", "reason")
    restarts.watch_table(lambda: {(reason,): count for reason, count in figures.restarts.items()})


def declare_block_history(registry: MetricsRegistry, chain: Chain) -> None:
    """Declare the metric of blocks whose bodies are not downloaded yet."""
    start = registry.gauge(
        Category.SYNCHRONIZER,
        "block_history_start",
        "Lowest block from which on all blocks have bodies and receipts; 0 if no block lacks them.",
    )
    start.watch(lambda: chain.history_start)


def declare_permissions(registry: MetricsRegistry, permissions: Permissions) -> None:
    """Declare metrics of permission decisions."""
    rules = permissions.node_rules
    kinds: dict[str, DecisionCounts] = {}
    if permissions.listed_accounts is not None:
        kinds["account_local"] = permissions.account_verdicts
    if permissions.listed_nodes is not None:
        kinds["node_local"] = rules.list_verdicts
    if permissions.account_contract is not None:
        kinds["transaction_smart_contract"] = permissions.account_contract.verdicts
    if rules.contract is not None:
        kinds["node_smart_contract"] = rules.contract.verdicts
        if rules.has_bootnodes:
            kinds["sync_status_node"] = rules.sync_verdicts
            reached = registry.gauge(
                Category.PERMISSIONING, "sync_status_node_sync_reached", "1 once the node contract applies."
            )
            reached.watch(lambda: int(rules.is_in_sync()))
    for kind, verdicts in kinds.items():
        _declare_verdicts(registry, kind, verdicts)


def _declare_verdicts(registry: MetricsRegistry, kind: str, verdicts: DecisionCounts) -> None:
    def counter(suffix: str, help: str, source: Callable[[], float]) -> None:
        registry.counter(Category.PERMISSIONING, f"{kind}_check_count{suffix}_total", help).watch(source)

    counter("", "Permission checks.", lambda: verdicts.asked)
    counter("_permitted", "Permission checks that permitted.", lambda: verdicts.permitted)
    counter("_unpermitted", "Permission checks that refused.", lambda: verdicts.refused)


def declare_pool(registry: MetricsRegistry, pool: TxPool, chain: Chain) -> None:
    """Declare metrics of pooled transactions."""
    category = Category.TRANSACTION_POOL
    size = registry.gauge(category, "transactions", "Transactions in the pool.", "state")
    size.watch(lambda: pool.counts()[0], "pending")
    size.watch(lambda: pool.counts()[1], "queued")
    registry.gauge(category, "transactions_limit", "Maximum transactions in the pool.").watch(
        lambda: pool.statistics().max_size
    )
    added = registry.counter(category, "transactions_added_total", "Transactions added.", "source")
    removed = registry.counter(category, "transactions_removed_total", "Transactions removed.", "source", "operation")
    sources = ("local", "remote")
    for source in sources:
        added.add(0, source)
        for operation in ("addedToBlock", "dropped"):
            removed.add(0, source, operation)

    duplicates = registry.counter(category, "transactions_duplicates_total", "Transactions received twice.", "source")
    duplicates.watch(lambda: pool.duplicates[Origin.LOCAL], "local")
    duplicates.watch(lambda: pool.duplicates[Origin.REMOTE], "remote")

    pooled: dict[Hash32, str] = {item.hash: sources[not item.is_local] for item in pool.transactions()}

    def on_pool_event(event: PoolEvent) -> None:
        for item in event.transactions:
            source = sources[not item.is_local]
            if isinstance(event, Added):
                pooled[item.hash] = source
                added.add(1, source)
            else:
                pooled.pop(item.hash, None)
                removed.add(1, source, "dropped")

    def on_chain_event(event: ChainEvent) -> None:
        for block in event.added if isinstance(event, Reorged) else event.blocks:
            if block.body.transaction_count:
                for transaction in block.body.transactions:
                    source = pooled.pop(transaction.hash, None)
                    if source is not None:
                        removed.add(1, source, "addedToBlock")

    pool.events.listen(on_pool_event)
    chain.events.listen(on_chain_event)


def declare_interface(
    registry: MetricsRegistry,
    listening: Mapping[str, Listener[Any]],
    filters: Filters,
    subscriptions: Subscriptions,
) -> None:
    """Declare metrics of the RPC interface: client connections, filters and subscriptions."""
    category = Category.RPC
    open_now = registry.gauge(category, "active_connections", "Open connections.", "service")
    evicted = registry.counter(
        category, "connections_closed_idle_total", "Idle connections closed for new ones.", "service"
    )
    refused = registry.counter(category, "connections_refused_total", "Connections over the limit.", "service")
    for name, service in listening.items():
        places = service.places
        open_now.watch(lambda places=places: len(places) + places.elsewhere, name)  # type: ignore[misc]  # the default binds the current value
        evicted.watch(lambda places=places: places.evicted, name)  # type: ignore[misc]
        refused.watch(lambda places=places: places.refused, name)  # type: ignore[misc]
    registry.gauge(category, "filters", "Installed filters.").watch(lambda: len(filters))
    registry.gauge(category, "subscriptions", "Active subscriptions.").watch(lambda: len(subscriptions))
    begun = registry.counter(category, "subscription_subscribe_total", "Subscriptions started.", "type")
    ended = registry.counter(category, "subscription_unsubscribe_total", "Subscriptions ended by clients.", "type")
    for kind in subscriptions.subscribed:
        begun.watch(lambda kind=kind: subscriptions.subscribed[kind], kind.value)  # type: ignore[misc]
        ended.watch(lambda kind=kind: subscriptions.unsubscribed[kind], kind.value)  # type: ignore[misc]


def declare_lanes(registry: MetricsRegistry, lanes: Lanes) -> None:
    """Declare metrics of the lanes (queues of worker threads)."""
    for name in _LANES:
        _declare_lane(registry, name, getattr(lanes, name))


def _declare_lane(registry: MetricsRegistry, name: str, lane: Lane) -> None:
    def gauge(figure: str, help: str, source: Callable[[], float]) -> None:
        registry.gauge(Category.EXECUTORS, f"{name}_{figure}", help).watch(source)

    def counter(figure: str, help: str, source: Callable[[], float]) -> None:
        registry.counter(Category.EXECUTORS, f"{name}_{figure}", help).watch(source)

    gauge("queue_length_current", f"Jobs in the {name} lane, running ones included.", lambda: lane.waiting)
    gauge("active_threads_current", "Running jobs.", lambda: min(lane.waiting, lane.threads))
    gauge("pool_size_current", "Maximum number of concurrent jobs.", lambda: lane.threads)
    counter("submitted_tasks_total", "Jobs accepted.", lambda: lane.submitted)
    counter("completed_tasks_total", "Jobs completed.", lambda: lane.submitted - lane.waiting)
    counter("rejected_tasks_total", "Jobs rejected by a full lane.", lambda: lane.rejected)
