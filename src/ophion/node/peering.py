"""From a core and its options to the services that meet other nodes: connections, eth on them, synchronisation.

A node whose peers are off has none of this and does not load it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from ophion.native.crypto import PrivateKey
from ophion.node.build import Core
from ophion.node.config import NodeConfig
from ophion.peers.eth.protocol import EthProtocol
from ophion.peers.options import PeerConfig
from ophion.peers.policy.admission import PeerLimits
from ophion.peers.policy.static_nodes import NAME, read_static_nodes
from ophion.peers.service import PeerService, PeerSettings
from ophion.peers.subprotocol import Subprotocol
from ophion.peers.sync.synchroniser import Synchroniser
from ophion.peers.table import Peers
from ophion.permissions.node_rules import NodeRules
from ophion.primitives.enode import Enode
from ophion.runtime.clock import Clock, Entropy
from ophion.runtime.lanes import Lanes
from ophion.runtime.supervisor import Service
from ophion.version import client_version


@dataclass(frozen=True, slots=True)
class Network:
    """What a node with peers has beside its core."""

    eth: EthProtocol
    sync: Synchroniser
    peers: PeerService

    @property
    def services(self) -> tuple[Service, ...]:
        """In the order in which they start: whoever connects finds eth at work."""
        return (self.eth, self.sync, self.peers)


def build_network(
    config: NodeConfig,
    core: Core,
    key: PrivateKey,
    data_path: Path,
    lanes: Lanes,
    clock: Clock,
    entropy: Entropy,
    rules: NodeRules | None = None,
) -> Network:
    """Everything between this node and others; production pauses while they are far ahead."""
    chosen = config.network.network_id
    network_id = core.chain.spec.chain_id if chosen is None else chosen
    # who gets a transaction in full: nothing that must not be guessed
    eth = EthProtocol(core.chain, core.importer, core.pool, lanes, clock, Random(entropy.token(16)), network_id)
    sync = Synchroniser(core.chain, core.importer, eth, lanes)
    sync.changed.listen(core.mining.follow)
    return Network(eth, sync, build_peers(config.peers, key, (eth,), data_path, clock, entropy, rules=rules))


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
