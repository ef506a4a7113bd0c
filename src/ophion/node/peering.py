"""Builds the services that connect to other nodes: connections, the eth protocol, synchronisation.

A node without peers does not import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from msgspec import Struct

from ophion.chainspec.spec import ChainSpec
from ophion.errors import ConfigError
from ophion.native.crypto import PrivateKey
from ophion.node.build import NodeCore
from ophion.node.config import NodeConfig
from ophion.peers.discovery.discovery import EthEntry
from ophion.peers.discovery.node_record import NAME as RECORD_NAME
from ophion.peers.eth.fork_id import ForkId
from ophion.peers.eth.protocol import EthProtocol
from ophion.peers.options import NatMethod, PeerConfig, read_bootnode
from ophion.peers.peer_table import Peers
from ophion.peers.policy.admission import PeerLimits
from ophion.peers.policy.static_nodes import NAME, read_static_nodes
from ophion.peers.service import PeerService
from ophion.peers.settings import PeerSettings
from ophion.peers.snap.protocol import SnapProtocol
from ophion.peers.subprotocol import Subprotocol
from ophion.peers.sync.synchroniser import Synchroniser
from ophion.permissions.node_rules import NodeRules
from ophion.permissions.permissions import Permissions
from ophion.primitives import rlp
from ophion.primitives.enode import Enode, is_host_name
from ophion.primitives.rlp import RlpError
from ophion.primitives.types import Address
from ophion.runtime.clock import Clock, Entropy
from ophion.runtime.supervisor import Service
from ophion.runtime.thread_pools import Lanes
from ophion.version import client_version

if TYPE_CHECKING:
    from ophion.chain.chain import Chain
    from ophion.consensus.bft.signatures import DigestSigner
    from ophion.enclave.interface import Enclave
    from ophion.peers.consensus.validators import Validators
    from ophion.peers.peer import Peer
    from ophion.peers.sync.block_history import BlockHistoryService
    from ophion.runtime.host_name_resolver import HostNames, Lookup
    from ophion.runtime.reverse_dns import ReverseNames


class PeerNetwork(Struct, frozen=True):
    """The services that connect a node to its peers."""

    eth: EthProtocol
    sync: Synchroniser
    peers: PeerService
    history: BlockHistoryService | None = None
    """Downloads bodies of old blocks; None if no block lacks its body."""

    @property
    def services(self) -> tuple[Service, ...]:
        """Return the services in start order: the eth protocol runs before the first connection."""
        history = () if self.history is None else (self.history,)
        return (self.eth, self.sync, self.peers, *history)


def build_network(
    config: NodeConfig,
    core: NodeCore,
    key: PrivateKey,
    data_path: Path,
    lanes: Lanes,
    clock: Clock,
    entropy: Entropy,
    rules: NodeRules | None = None,
    enclave: Enclave | None = None,
    validator_key: DigestSigner | None = None,
) -> PeerNetwork:
    """Build all peer services. Block production pauses while peers are far ahead.

    `validator_key` is None if the node's key is also the validator key.
    """
    chosen = config.network.network_id
    network_id = core.chain.spec.chain_id if chosen is None else chosen
    # the seed need not be secret, because it only selects the peers that get transactions in full
    eth = EthProtocol(core.chain, core.importer, core.pool, lanes, clock, Random(entropy.token(16)), network_id)
    sync = Synchroniser(core.chain, core.importer, eth, lanes)
    sync.changed.listen(core.mining.follow)
    bootnodes = core.chain.spec.bootnodes
    validators = _validators(core, sync, clock)
    if validators is not None:
        eth.transactions.are_linked = validators.are_linked
    consensus = () if validators is None else _consensus(core, key, validator_key, validators, eth)
    snap = SnapProtocol(core.chain.store, eth.lane, eth.is_member_node, clock)
    subprotocols: tuple[Subprotocol, ...] = (eth, snap, *consensus, *_priv(enclave, key, clock, entropy, eth))

    def is_member(node: Address) -> bool:
        return (node if validators is None else validators.nodes.validator_of(node)) in eth.makers

    peers = build_peers(
        config.peers,
        key,
        subprotocols,
        data_path,
        clock,
        entropy,
        rules=rules,
        chain=_mark(eth),
        bootnodes=bootnodes,
        is_member=is_member,
    )
    if rules is not None and peers.host_names is not None:
        rules.use_host_names(peers.host_names, _reverse_names(config.peers, clock, rules))
    if rules is not None:
        rules.is_in_sync = sync.is_in_sync
    core.mining.watch_peers(
        lambda: [(one.peer.validator_address, one.height) for one in eth.peers if one.is_usable],
        eth.announced_rules.items,
        lambda: peers.connecting_addresses({one.peer.id for one in eth.peers if one.is_usable}),
    )
    return PeerNetwork(eth, sync, peers, _block_history(core.chain, eth, sync, lanes))


def _block_history(chain: Chain, eth: EthProtocol, sync: Synchroniser, lanes: Lanes) -> BlockHistoryService | None:
    """Return the service that downloads bodies of old blocks, or None if no block lacks its body."""
    if not chain.history_start:
        return None
    # lazy import: only a node that has started by snap synchronisation needs this module
    from ophion.peers.sync.block_history import BlockHistoryService, HistoryDownload

    download = HistoryDownload(chain.store, chain.engine, lambda: [peer for peer in eth.peers if peer.is_usable], lanes)
    return BlockHistoryService(download, sync.is_in_sync)


def _validators(core: NodeCore, sync: Synchroniser, clock: Clock) -> Validators | None:
    """Return the consensus connections between validators, or None if the chain has no BFT consensus."""
    if core.bft is None:
        return None
    from ophion.peers.consensus.validators import Validators

    validators = Validators(core.bft, clock, sync.catch_up)
    core.bft.join(validators)
    return validators


def _consensus(
    core: NodeCore, key: PrivateKey, validator_key: DigestSigner | None, validators: Validators, eth: EthProtocol
) -> tuple[Subprotocol, ...]:
    """Return the consensus protocols of a BFT chain. Every node of the chain offers them (networking.md 0)."""
    assert core.bft is not None
    from ophion.peers.consensus.identity import IdentityProtocol
    from ophion.peers.consensus.protocol import ConsensusProtocol

    identity = IdentityProtocol(validators, core.chain.genesis.hash, key.public_key, validator_key)
    identity.senders_named = eth.transactions.senders_named
    own = key.address if validator_key is None else validator_key.address

    def name_senders(peer: Peer, senders: bytes) -> None:
        # receivers ignore senders that are named by a node that is no block producer
        if own in eth.makers:
            identity.name_senders(peer, senders)

    eth.transactions.name_senders = name_senders
    return (*(ConsensusProtocol(one, validators) for one in core.bft.engine.schedule.protocols), identity)


def _priv(
    enclave: Enclave | None, key: PrivateKey, clock: Clock, entropy: Entropy, eth: EthProtocol
) -> tuple[Subprotocol, ...]:
    """Return the protocol between embedded enclaves, if this node has an embedded enclave."""
    if enclave is None:
        return ()
    # lazy import: most nodes have no enclave
    from ophion.enclave.embedded import EmbeddedEnclave
    from ophion.peers.priv.protocol import PrivProtocol

    if not isinstance(enclave, EmbeddedEnclave):
        return ()
    return (PrivProtocol(enclave, key.public_key, clock, entropy, eth.lane),)


def _mark(eth: EthProtocol) -> EthEntry:
    """Return an object that writes this chain's entry into the node record and checks the entries of other nodes."""

    def is_ours(item: rlp.Item) -> bool:
        head = eth.chain.head
        try:
            return eth.fork_ids.problem(ForkId.read(item), head.number, head.timestamp) is None
        except RlpError:
            return False

    return EthEntry(lambda: rlp.encode([eth.fork_id.items()]), is_ours)


def build_peers(
    config: PeerConfig,
    key: PrivateKey,
    subprotocols: Sequence[Subprotocol],
    data_path: Path,
    clock: Clock,
    entropy: Entropy,
    peers: Peers | None = None,
    rules: NodeRules | None = None,
    chain: EthEntry | None = None,
    bootnodes: Sequence[str] = (),
    is_member: Callable[[Address], bool] = lambda address: False,
) -> PeerService:
    """Build the peer service.

    `peers` is the peer table that the sub-protocols share. `rules` decide which nodes are permitted. `chain` is the
    chain's entry in node records. `bootnodes` come from the genesis file and apply when no option sets bootnodes.
    `is_member` returns whether a node is a validator.
    """
    settings = peer_settings(config, data_path, bootnodes)
    names = _host_names(config, clock) if config.dns_enabled else None
    return PeerService(settings, key, subprotocols, clock, entropy, peers, rules, chain, is_member, names)


def _host_names(config: PeerConfig, clock: Clock) -> HostNames:
    # lazy import: most nodes have no host names to resolve
    from ophion.runtime.host_name_resolver import HostNames

    names = HostNames(clock, _lookup(config), is_updated=config.dns_update_enabled)
    if is_host_name(config.host):
        names.add_name(config.host.lower())
    return names


def _reverse_names(config: PeerConfig, clock: Clock, rules: NodeRules) -> ReverseNames | None:
    """Return a resolver from IP address to host name, if the permission contract may list host names (interface version
    2). Otherwise return None.
    """
    if rules.contract is None or rules.contract.version == 1:
        return None
    from ophion.runtime.reverse_dns import ReverseNames, hosts_file_reverse_lookup, system_reverse_lookup

    chosen = config.dns_hosts_file
    return ReverseNames(clock, system_reverse_lookup if chosen is None else hosts_file_reverse_lookup(chosen))


def _lookup(config: PeerConfig) -> Lookup:
    from ophion.runtime.host_name_resolver import hosts_file_lookup, system_lookup

    chosen = config.dns_hosts_file
    return system_lookup if chosen is None else hosts_file_lookup(chosen)


def _advertised_address(config: PeerConfig) -> str:
    """Return the address of --p2p-host. A host name is resolved once, so a new address takes effect after a restart."""
    if not (config.dns_enabled and is_host_name(config.host)):
        return config.host
    try:
        found = _lookup(config)(config.host)
    except OSError as error:
        raise ConfigError(f"The host name {config.host} of --p2p-host does not resolve: {error}") from error
    if not found:
        raise ConfigError(f"The host name {config.host} of --p2p-host does not resolve: it has no address")
    return found[0]


def open_permissions(config: NodeConfig, spec: ChainSpec, data_path: Path, key: PrivateKey) -> Permissions:
    """Load the permission rules. Raises an error if the rules do not permit the static nodes and the bootnodes."""
    settings = peer_settings(config.peers, data_path, spec.bootnodes)
    bootnodes, static = (settings.bootnodes, settings.static) if config.peers.enabled else ((), ())
    fixed, host_names = (*bootnodes, *static), config.peers.dns_enabled
    return Permissions.open(config.permissions, data_path, key.public_key, fixed, bootnodes, host_names=host_names)


def peer_settings(config: PeerConfig, data_path: Path, bootnodes: Sequence[str] = ()) -> PeerSettings:
    """Return the peer settings that the options describe. Raises `ConfigError` if the static nodes file or the genesis
    bootnodes are invalid.
    """
    chosen = config.static_nodes_file
    static = read_static_nodes(
        data_path / NAME if chosen is None else chosen, must_exist=chosen is not None, host_names=config.dns_enabled
    )
    return PeerSettings(
        host=_advertised_address(config),
        interface=config.interface,
        port=config.port,
        limits=PeerLimits.of(config.max_peers, config.max_remote_percentage if config.limit_remote else None),
        static=static,
        banned=frozenset(config.banned),
        subnets=config.subnets,
        client_id=client_version(config.identity),
        has_discovery=config.discovery_enabled,
        asks_router=config.nat_method is NatMethod.UPNP,
        bootnodes=_genesis_bootnodes(bootnodes, config.dns_enabled) if config.bootnodes is None else config.bootnodes,
        record_file=data_path / RECORD_NAME,
    )


def _genesis_bootnodes(urls: Sequence[str], host_names: bool) -> tuple[Enode, ...]:
    try:
        return tuple(read_bootnode(url, host_names=host_names) for url in urls)
    except ValueError as error:
        raise ConfigError(f"config.discovery.bootnodes of the genesis file: {error}") from None
