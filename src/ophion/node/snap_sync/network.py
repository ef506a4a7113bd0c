"""The peer connections of a node during snap synchronisation: the protocols eth and snap, without consensus, pool and
RPC.

Peers see a node whose head is the genesis block. The connections use a separate database with only the genesis block,
because the new database has blocks without states.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from msgspec import Struct

from ophion.chain.chain import Chain
from ophion.chain.gas_price import FeeFloor
from ophion.chain.importer import Importer
from ophion.chain.queries import ChainQueries
from ophion.chainspec.genesis import Genesis
from ophion.consensus.engine import Engine
from ophion.native.crypto import PrivateKey
from ophion.native.store import Store
from ophion.node.build import pool_head
from ophion.node.config import NodeConfig
from ophion.node.peering import build_peers, open_permissions
from ophion.peers.eth.peer import EthPeer
from ophion.peers.eth.protocol import EthProtocol
from ophion.peers.service import PeerService
from ophion.peers.snap.peer import SnapPeers
from ophion.peers.snap.protocol import SnapProtocol
from ophion.pool.pool import TxPool
from ophion.runtime.clock import Clock, Entropy
from ophion.runtime.supervisor import Service
from ophion.runtime.thread_pools import Lanes


class SnapNetwork(Struct, frozen=True):
    """The services that run during snap synchronisation."""

    eth: EthProtocol
    snap: SnapPeers
    peers: PeerService

    @property
    def services(self) -> tuple[Service, ...]:
        """Return the services in start order."""
        return (self.eth, self.peers)

    def usable(self) -> list[EthPeer]:
        """Return the connected peers whose best block is known."""
        return [peer for peer in self.eth.peers if peer.is_usable]


def build_snap_network(
    config: NodeConfig,
    genesis: Genesis,
    engine: Engine,
    store: Store,
    key: PrivateKey,
    data_path: Path,
    lanes: Lanes,
    clock: Clock,
    entropy: Entropy,
) -> SnapNetwork:
    """Build the connections over a database that has only the genesis block. The permission rules apply."""
    chain = Chain.open(store, genesis, engine)
    rules = None
    if config.permissions.is_used:
        permissions = open_permissions(config, genesis.spec, data_path, key)
        permissions.use_contracts(config.permissions, chain)
        rules = permissions.node_rules
    importer = Importer(chain, lanes, clock)
    floor = FeeFloor(config.miner.min_gas_price, config.miner.min_priority_fee)
    pool = TxPool(config.pool, floor, lanes, clock, pool_head(ChainQueries(chain, clock)))
    chosen = config.network.network_id
    network_id = genesis.spec.chain_id if chosen is None else chosen
    # the seed need not be secret, because it only selects the peers that get transactions in full
    eth = EthProtocol(chain, importer, pool, lanes, clock, Random(entropy.token(16)), network_id)
    eth.is_accepting = lambda: False
    snap_peers = SnapPeers()
    snap = SnapProtocol(store, eth.lane, eth.is_member_node, clock, snap_peers)
    peers = build_peers(
        config.peers, key, (eth, snap), data_path, clock, entropy, rules=rules, bootnodes=genesis.spec.bootnodes
    )
    return SnapNetwork(eth, snap_peers, peers)
