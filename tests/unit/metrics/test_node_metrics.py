"""Tests the metrics of a real chain, pool and interface, and the dashboard that draws them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ophion.chain.pruning import PruningRounds
from ophion.metrics.metric_declarations import declare_peers, declare_privacy, declare_votes
from ophion.metrics.node_metrics import MeasuredParts, NodeMetrics
from ophion.node.peering import PeerNetwork
from ophion.peers.eth.protocol import EthProtocol
from ophion.peers.service import PeerService
from ophion.peers.settings import PeerSettings
from ophion.peers.sync.synchroniser import Synchroniser
from ophion.permissions.node_rules import Action
from ophion.permissions.options import DEFAULT_FILE, PermissionConfig
from ophion.permissions.permissions import Permissions
from ophion.pool.events import Origin, Rejected
from ophion.primitives.enode import Enode
from ophion.producer.shared_vote_store import MemoryVoteStore
from ophion.producer.vote_caster import VoteCaster
from ophion.producer.vote_store import VoteStore
from ophion.rpc.endpoints.health import Health
from ophion.rpc.endpoints.services import HttpSettings, WebSocketSettings, http_service, websocket_service
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.metric_category import Category
from ophion.runtime.metrics_registry import MetricsRegistry
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.conftest import ROOT
from tests.unit.rpc.interface import Interface, open_interface
from tests.unit.rpc.private_interface import open_private

EVERYTHING = frozenset(Category)
DASHBOARDS = [ROOT / "src" / "ophion" / "metrics" / "dashboard.json"]
STANDARD = (
    "ethereum_blockchain_height",
    "ethereum_best_known_block_number",
    "ethereum_peer_count",
    "ethereum_peer_limit",
    "besu_blockchain_difficulty_total",
    "besu_blockchain_chain_head_timestamp",
    "process_cpu_seconds_total",
    "jvm_gc_collection_seconds_sum",
    "jvm_memory_bytes_used",
)
"""Metrics of the standard Besu dashboard (operations.md 9)."""


@pytest.fixture
def dev(tmp_path: Path) -> Iterator[Interface]:
    with open_interface(tmp_path) as opened:
        yield opened


def network(dev: Interface) -> PeerNetwork | None:
    """Return eth protocol and synchronisation for the interface."""
    if dev.context.peers is None:
        return None
    core, lanes = dev.node.core, dev.context.lanes
    eth = EthProtocol(core.chain, core.importer, core.pool, lanes, dev.node.clock, Random(1), 1)
    return PeerNetwork(eth, Synchroniser(core.chain, core.importer, eth, lanes), dev.context.peers)


def watch(
    dev: Interface,
    is_on: bool = True,
    database: Path | None = None,
    pruning: PruningRounds | None = None,
    permissions: Permissions | None = None,
) -> NodeMetrics:
    context, core = dev.context, dev.node
    listening = {
        "jsonrpc": http_service(context, HttpSettings(), Health(lambda: None)),
        "ws": websocket_service(context, WebSocketSettings()),
    }
    return NodeMetrics(
        MeasuredParts(
            core.chain,
            core.queries,
            core.pool,
            context.filters,
            context.subscriptions,
            listening,
            context.lanes,
            core.clock,
            network(dev),
            database,
            pruning=pruning,
            permissions=permissions,
        ),
        is_on,
    )


def values(metrics: NodeMetrics) -> dict[str, float]:
    lines = metrics.registry.text(EVERYTHING).splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def test_chain_and_pool_are_followed(dev: Interface) -> None:
    metrics = watch(dev)
    metrics.declare()
    before = values(metrics)
    assert before["ethereum_blockchain_height"] == 0
    dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[1], 0), legacy_transaction(DEV_KEYS[1], 1)))
    dev.run(dev.node.send(legacy_transaction(DEV_KEYS[1], 2)))
    again = dev.run(dev.node.pool.add([legacy_transaction(DEV_KEYS[1], 2)], Origin.REMOTE))
    assert isinstance(again[0], Rejected)
    after = values(metrics)
    assert after['ophion_transaction_pool_transactions_duplicates_total{source="remote"}'] == 1
    assert after['ophion_transaction_pool_transactions_duplicates_total{source="local"}'] == 0
    assert after["ethereum_blockchain_height"] == after["ophion_blockchain_height"] == 1
    assert after["besu_blockchain_chain_head_transaction_count"] == 2
    assert after["ophion_blockchain_transactions_total"] == 2
    assert after["ophion_blockchain_gas_used_total"] == 42_000
    assert 1000 < after["ophion_blockchain_state_cache_bytes"] < 100_000
    assert after["ophion_blockchain_blocks_added_total"] == 1
    added = 'transaction_pool_transactions_added_total{source="local"}'
    assert after[f"ophion_{added}"] + after[f"ophion_{added.replace('local', 'remote')}"] == 3
    mined = [value for name, value in after.items() if name.startswith("ophion_") and "addedToBlock" in name]
    assert sum(mined) == 2
    assert after['ophion_transaction_pool_transactions{state="pending"}'] == 1


def test_the_disk_that_the_database_takes(dev: Interface, tmp_path: Path) -> None:
    file = tmp_path / "some.mdb"
    metrics = watch(dev, database=file)
    metrics.declare()
    assert values(metrics)["ophion_blockchain_database_bytes"] == 0
    file.write_bytes(b"x" * 10_000)
    assert 10_000 <= values(metrics)["ophion_blockchain_database_bytes"] < 100_000


def test_old_states_that_go_are_counted(dev: Interface) -> None:
    rounds = PruningRounds(dev.node.chain.store, 1)
    metrics = watch(dev, pruning=rounds)
    metrics.declare()
    assert values(metrics)["ophion_pruner_history_blocks"] == 1
    assert values(metrics)["ophion_pruner_states_dropped_total"] == 0
    for nonce in range(4):
        dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[1], nonce)))
    rounds.catch_up(4)
    after = values(metrics)
    assert after["ophion_pruner_states_dropped_total"] == 2
    assert after["besu_pruner_swept_nodes_total"] > 0
    assert after["besu_pruner_marked_nodes_total"] > 0
    assert after["besu_pruner_mark_operations_total"] == after["besu_pruner_sweep_operations_total"] == 1
    assert after["ophion_pruner_running"] == after["ophion_pruner_failures_total"] == 0


def test_what_rules_say_is_counted_where_there_are_some(dev: Interface, tmp_path: Path) -> None:
    known = DEV_KEYS[0].address
    (tmp_path / DEFAULT_FILE).write_text(f'accounts-allowlist = ["0x{known.hex()}"]\nnodes-allowlist = []\n')
    config = PermissionConfig(accounts_file_enabled=True, nodes_file_enabled=True)
    permissions = Permissions.open(config, tmp_path)
    metrics = watch(dev, permissions=permissions)
    metrics.declare()
    permissions.account_refusal(known)
    permissions.account_refusal(DEV_KEYS[1].address)
    permissions.account_refusal(DEV_KEYS[1].address)
    permissions.node_rules.refusal_of(Enode(bytes(range(64)), "127.0.0.1", 1, 1), Action.ACCEPT)
    shown = {name: value for name, value in values(metrics).items() if name.startswith("besu_permissioning_")}
    assert shown == {
        "besu_permissioning_account_local_check_count_total": 3,
        "besu_permissioning_account_local_check_count_permitted_total": 1,
        "besu_permissioning_account_local_check_count_unpermitted_total": 2,
        "besu_permissioning_node_local_check_count_total": 1,
        "besu_permissioning_node_local_check_count_permitted_total": 0,
        "besu_permissioning_node_local_check_count_unpermitted_total": 1,
    }
    without = watch(dev, permissions=Permissions())
    without.declare()
    assert not [name for name in values(without) if "permissioning" in name]


def test_lanes_and_synchronisation(dev: Interface) -> None:
    metrics = watch(dev)
    metrics.declare()
    shown = values(metrics)
    for figure in ("queue_length_current", "active_threads_current", "rejected_tasks_total"):
        assert shown[f"ophion_executors_read_{figure}"] == 0
    network = metrics._watched.network
    if network is None:
        return
    figures = network.sync.figures
    figures.tasks["headers"].record(0.2)
    figures.processed["headers", "added"] += 5
    figures.restarts["not_answered"] += 1
    shown = values(metrics)
    assert shown['ophion_synchronizer_task_count{taskName="headers"}'] == 1
    assert shown['besu_synchronizer_chain_download_pipeline_processed_total{step="headers",action="added"}'] == 5
    assert shown['besu_synchronizer_chain_download_pipeline_restarts_total{reason="not_answered"}'] == 1
    assert shown["besu_peers_pending_peer_requests_current"] == 0


def test_the_standard_dashboard_finds_everything(dev: Interface) -> None:
    metrics = watch(dev)
    metrics.declare()
    shown = {name.partition("{")[0] for name in values(metrics)}
    assert [name for name in STANDARD if name not in shown] == []


def test_the_tree_of_debug_metrics(dev: Interface) -> None:
    metrics = watch(dev, is_on=False)
    assert metrics.requests is None
    tree: Any = metrics.tree()
    assert tree["blockchain"]["height"] == 0
    assert tree["process"]["cpu_seconds_total"] > 0
    assert tree["transaction_pool"]["transactions_added_total"] == {"local": 0, "remote": 0}
    assert metrics.tree()  # a second call must not declare the metrics again
    json.dumps(tree)


def test_every_family_is_named_as_prometheus_wants(dev: Interface) -> None:
    metrics = watch(dev)
    metrics.declare()
    families = metrics.registry.families()
    assert [name for name in families if not re.fullmatch(r"[a-z][a-z0-9_]*", name)] == []
    counters = [name for name, kind in families.items() if kind == "counter" and not name.startswith("jvm_")]
    assert [name for name in counters if not name.endswith("_total")] == []


def names_in(expression: str) -> set[str]:
    """Return the metrics in an expression: all names that are not functions, keywords, labels or durations."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\"[^\"]*\"|\b(by|without|on)\s*\([^)]*\)", " ", expression)
    words = re.findall(r"[a-zA-Z_][a-zA-Z0-9_]*(?!\w*\s*\()", re.sub(r"[a-zA-Z_]\w*\s*\(", "(", bare))
    return {word for word in words if "_" in word}


def expressions(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in ("expr", "query") and isinstance(value, str):
                yield re.sub(r"label_values\(([^,]+),[^)]*\)", r"\1", value)
            else:
                yield from expressions(value)
    elif isinstance(node, list):
        for value in node:
            yield from expressions(value)


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)
def test_a_dashboard_draws_only_what_there_is(dev: Interface, path: Path) -> None:
    metrics = watch(dev)
    metrics.declare()
    known = set()
    for name, kind in metrics.registry.families().items():
        known |= {name + suffix for suffix in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    used = {name for expression in expressions(json.loads(path.read_text())) for name in names_in(expression)}
    assert len(used) > 10
    assert used - known == set()


def test_alert_rules_watch_only_what_there_is(dev: Interface, tmp_path: Path) -> None:
    metrics = watch(dev, pruning=PruningRounds(dev.node.chain.store, 1))
    metrics.declare()
    rest = MetricsRegistry()
    declare_votes(rest, _caster(dev))
    (tmp_path / "member").mkdir()
    with open_private(tmp_path / "member") as member:
        declare_privacy(rest, member.privacy.executor)
    known = set()
    for name, kind in (*metrics.registry.families().items(), *rest.families().items()):
        known |= {f"{name}_bucket"} if kind == "histogram" else {name}
    rules = (ROOT / "src" / "ophion" / "metrics" / "alerts.yml").read_text()
    used = {name for expression in re.findall(r"^ *expr: (.*)$", rules, re.MULTILINE) for name in names_in(expression)}
    assert len(used) > 12
    assert used - known == set()
    assert rules.count("- alert:") == rules.count("severity:") == rules.count("summary:") == rules.count("action:")


def _caster(dev: Interface) -> VoteCaster:
    store = VoteStore(dev.node.chain.store, dev.context.lanes, bytes(20))
    return VoteCaster(store, MemoryVoteStore(), dev.node.clock, lambda result: None, lambda order: True)


def documented(text: str) -> Iterator[re.Pattern[str]]:
    """Yield patterns for the names in the first column of a documentation table. A name that begins with `_` is a
    suffix of the first name in its row.
    """
    for row in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE):
        first, *others = re.findall(r"`(\w+)`", row)
        names = [first, *(first[:end] + other for other in others for end in range(len(first)))]
        yield re.compile("|".join(names).replace("KIND", "[a-z_]+").replace("LANE", "[a-z]+"))


def test_every_family_that_a_node_can_have_stands_in_the_documentation(dev: Interface, tmp_path: Path) -> None:
    (tmp_path / DEFAULT_FILE).write_text("accounts-allowlist = []\nnodes-allowlist = []\n")
    rules = Permissions.open(PermissionConfig(accounts_file_enabled=True, nodes_file_enabled=True), tmp_path)
    metrics = watch(dev, database=tmp_path, pruning=PruningRounds(dev.node.chain.store, 1), permissions=rules)
    metrics.declare()
    finding = MetricsRegistry()
    settings = PeerSettings(has_discovery=True)
    declare_peers(finding, PeerService(settings, DEV_KEYS[0], (), dev.node.clock, SystemEntropy()))
    (tmp_path / "member").mkdir()
    with open_private(tmp_path / "member") as member:
        declare_privacy(finding, member.privacy.executor)
    declare_votes(finding, _caster(dev))
    names = {*metrics.registry.families(), *finding.families()}
    assert {"ophion_network_discovery_nodes_current", "ophion_blockchain_private_height"} < names
    rows = list(documented((ROOT / "docs" / "metrics.md").read_text()))
    missing = [name for name in names if not name.startswith("besu_") and not any(row.fullmatch(name) for row in rows)]
    assert missing == []


def test_there_is_a_dashboard() -> None:
    assert DASHBOARDS


def test_names_are_found_in_expressions() -> None:
    expression = 'histogram_quantile(0.95, sum by (le, a_b) (rate(x_time_bucket{method_name=~"$m_n"}[5m]))) / y_total'
    assert names_in(expression) == {"x_time_bucket", "y_total"}


def test_connections_are_shown_by_what_they_carry_and_how_they_end(dev: Interface) -> None:
    metrics = watch(dev)
    metrics.declare()
    service = dev.context.peers
    assert service is not None
    service.traffic.received["eth", "NewBlock", 7] += 3
    service.traffic.disconnected["remote", "too_many_peers"] += 1
    service.traffic.connected["inbound"] += 2
    text = metrics.registry.text(frozenset({Category.PEERS, Category.NETWORK}))
    assert 'ophion_network_p2p_messages_inbound_total{protocol="eth",name="NewBlock",code="7"} 3\n' in text
    assert 'besu_peers_disconnected_total{initiator="remote",disconnectReason="too_many_peers"} 1\n' in text
    assert 'ophion_peers_connected_total{direction="inbound"} 2\n' in text
    assert "ophion_peers_outgoing_bytes_current 0\n" in text
    tree: Any = metrics.tree()
    assert tree["network"]["p2p_messages_inbound_total"]["eth"]["NewBlock"]["7"] == 3


def test_what_eth_passes_on_and_how_far_it_is_behind(dev: Interface) -> None:
    metrics = watch(dev)
    metrics.declare()
    found = values(metrics)
    assert found["ophion_synchronizer_in_sync"] == 1
    assert found["ethereum_best_known_block_number"] == 0
    for name in ("gossip_blocks_total", 'gossip_transactions_total{form="full"}', "announced_transactions_current"):
        assert found[f"ophion_peers_{name}"] == 0
