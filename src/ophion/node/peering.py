"""From options to the service that meets other nodes.

What rides on connections (eth, the messages of validators) is put together by whoever calls; a node without any still
says Hello and why it leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ophion.native.crypto import PrivateKey
from ophion.peers.options import PeerConfig
from ophion.peers.policy.admission import PeerLimits
from ophion.peers.policy.static_nodes import NAME, read_static_nodes
from ophion.peers.service import PeerService, PeerSettings
from ophion.peers.subprotocol import Subprotocol
from ophion.peers.table import Peers
from ophion.permissions.node_rules import NodeRules
from ophion.primitives.enode import Enode
from ophion.runtime.clock import Clock, Entropy
from ophion.version import client_version


def build_peers(
    config: PeerConfig,
    key: PrivateKey,
    subprotocols: Sequence[Subprotocol],
    data_path: Path,
    clock: Clock,
    entropy: Entropy,
    peers: Peers | None = None,
    rules: NodeRules | None = None,
) -> PeerService:
    """The service of a node whose peers are on; `peers` is the table that sub-protocols hold already."""
    settings = peer_settings(config, data_path)
    return PeerService(settings, key, subprotocols, clock, entropy, peers, rules)


def fixed_nodes(config: PeerConfig, data_path: Path) -> tuple[Enode, ...]:
    """The nodes that options and files tell this one to connect to."""
    return (*(config.bootnodes or ()), *peer_settings(config, data_path).static) if config.enabled else ()


def peer_settings(config: PeerConfig, data_path: Path) -> PeerSettings:
    """What the options say; `ConfigError` for a file of static nodes that cannot be used."""
    chosen = config.static_nodes_file
    static = read_static_nodes(data_path / NAME if chosen is None else chosen, must_exist=chosen is not None)
    return PeerSettings(
        host=config.host,
        interface=config.interface,
        port=config.port,
        limits=PeerLimits.of(config.max_peers, config.max_remote_percentage if config.limit_remote else None),
        static=static,
        banned=frozenset(config.banned),
        subnets=config.subnets,
        client_id=client_version(config.identity),
    )
